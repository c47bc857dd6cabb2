import { expect, test } from 'vitest';
import { createTickets, holderOf } from '#src/roles/gateway/access/ticket.ts';
import { parseRoute } from '#src/roles/gateway/routes.ts';
import { createUrls, publicPrefix } from '#src/roles/gateway/access/urls.ts';
import { createVncSecret } from '#src/roles/gateway/access/vnc-secret.ts';

const KEY = Buffer.alloc(32, 1);
const tickets = createTickets(KEY);
const ids = ['org_acme-1', 'ses_0123456789abcdefghij'] as const;
const KEY_HASH = 'ab'.repeat(32);
const holder = holderOf(KEY_HASH);
const session = { organizationId: ids[0], id: ids[1] };

test('a ticket opens in every process with the same key', () => {
  for (const kind of ['cdp', 'vnc'] as const) {
    const opened = createTickets(Buffer.from(KEY)).open(tickets.issue(kind, ...ids));
    expect(opened).toEqual({
      kind,
      organizationId: ids[0],
      sessionId: ids[1],
      epoch: 0,
      holder: null,
      grant: null,
    });
  }
});

test('a ticket keeps its epoch, its holder and its grant', () => {
  for (const to of [
    { epoch: 0, holder },
    { epoch: 1, holder: null },
    { epoch: 999_999_999, holder },
    { epoch: 0, holder: null, grant: { kind: 'share', id: 's-1' } as const },
    { epoch: 2, holder, grant: { kind: 'handoff', id: 'h_1' } as const },
  ])
    expect(tickets.open(tickets.issue('vnc', ...ids, to))).toMatchObject(to);
});

test('without rotation and holder a ticket is as those of before there were any', () => {
  const before = 'hLmbVgmUgs7z_KtJXQbuo1-VGMptfRw7aBXRG0ftXcnTwq3o5KEGUfKWuQa6Ci_UQZuOEQ';
  expect(tickets.issue('cdp', ...ids)).toBe(before);
  expect(tickets.issue('cdp', ...ids, { epoch: 0, holder: null })).toBe(before);
  expect(tickets.open(before)).toMatchObject({ epoch: 0, holder: null });
});

test('a holder is twelve characters of its key’s hash', () => {
  expect(holderOf('fb'.repeat(32))).toBe(Buffer.alloc(9, 0xfb).toString('base64url'));
  expect(holder).not.toBe(holderOf('ac'.repeat(32)));
});

test('an invalid epoch or holder gets no ticket', () => {
  for (const epoch of [-1, 0.5, 1e9, NaN])
    expect(() => tickets.issue('cdp', ...ids, { epoch, holder: null })).toThrow(RangeError);
  for (const odd of ['', 'short', 'with.a.dot..', 'x'.repeat(13)])
    expect(() => tickets.issue('cdp', ...ids, { epoch: 0, holder: odd })).toThrow(RangeError);
});

test('an invalid grant gets no ticket', () => {
  for (const id of ['', 'a.b', 'x'.repeat(65)])
    expect(() =>
      tickets.issue('vnc', ...ids, { epoch: 0, holder, grant: { kind: 'share', id } }),
    ).toThrow(RangeError);
});

test('the same caller always gets the same ticket, and no two contents share one', () => {
  expect(tickets.issue('cdp', ...ids)).toBe(tickets.issue('cdp', ...ids));
  const all = [
    tickets.issue('cdp', ...ids),
    tickets.issue('vnc', ...ids),
    tickets.issue('cdp', 'org_acme-2', ids[1]),
    tickets.issue('cdp', ...ids, { epoch: 1, holder: null }),
    tickets.issue('cdp', ...ids, { epoch: 0, holder }),
    tickets.issue('cdp', ...ids, { epoch: 1, holder }),
    tickets.issue('cdp', ...ids, { epoch: 0, holder: null, grant: { kind: 'share', id: 'a' } }),
    tickets.issue('cdp', ...ids, { epoch: 0, holder: null, grant: { kind: 'handoff', id: 'a' } }),
    tickets.issue('cdp', ...ids, { epoch: 0, holder, grant: { kind: 'share', id: 'a' } }),
    tickets.issue('cdp', 'a', 'b'),
    tickets.issue('cdp', 'b', 'a'),
    createTickets(Buffer.alloc(32, 2)).issue('cdp', ...ids),
  ];
  expect(new Set(all).size).toBe(all.length);
});

test('a ticket reveals neither id nor what it has in common with another', () => {
  const ticket = tickets.issue('cdp', ...ids);
  const bytes = Buffer.from(ticket, 'base64url').toString('latin1');
  for (const id of ids) expect(`${ticket} ${bytes}`).not.toContain(id.slice(0, 6));
  expect(tickets.issue('vnc', ...ids).slice(0, 8)).not.toBe(ticket.slice(0, 8));
});

test('every ticket with one changed character is refused', () => {
  const ticket = tickets.issue('cdp', ...ids);
  for (let at = 0; at < ticket.length; at += 1) {
    for (const character of ['A', 'b', '_', '=', ' ', '+']) {
      if (ticket[at] === character) continue;
      expect(tickets.open(ticket.slice(0, at) + character + ticket.slice(at + 1))).toBeNull();
    }
    expect(tickets.open(ticket.slice(0, at))).toBeNull();
  }
  for (const odd of [
    `${ticket}A`,
    `${ticket}=`,
    ` ${ticket}`,
    '',
    'A'.repeat(314),
    'A'.repeat(1e6),
  ])
    expect(tickets.open(odd)).toBeNull();
});

test('the longest ids fit; an invalid id gets no ticket', () => {
  const long = 'x'.repeat(64);
  const longest = tickets.issue('vnc', long, long, {
    epoch: 999_999_999,
    holder,
    grant: { kind: 'share', id: long },
  });
  expect(longest).toHaveLength(314);
  expect(tickets.open(longest)).toMatchObject({ sessionId: long, holder, grant: { id: long } });
  expect(parseRoute({ url: `/vnc/${longest}/`, headers: {} })).toEqual({
    to: 'viewer',
    ticket: longest,
  });
  for (const odd of ['', 'a.b', 'a/b', 'x'.repeat(65)]) {
    expect(() => tickets.issue('cdp', odd, 'a')).toThrow(RangeError);
    expect(() => tickets.issue('cdp', 'a', odd)).toThrow(RangeError);
  }
});

test('a master key that is too short is rejected', () => {
  expect(() => createTickets(new Uint8Array(0))).toThrow(RangeError);
  expect(() => createVncSecret(new Uint8Array(15))).toThrow(RangeError);
});

test('a VNC secret is eight letters and digits, the same for the same workload and key', () => {
  const secretOf = createVncSecret(KEY);
  expect(secretOf('wl_1')).toMatch(/^[A-Za-z0-9]{8}$/);
  expect(createVncSecret(Buffer.from(KEY))('wl_1')).toBe(secretOf('wl_1'));
  expect(secretOf('wl_2')).not.toBe(secretOf('wl_1'));
  expect(createVncSecret(Buffer.alloc(32, 2))('wl_1')).not.toBe(secretOf('wl_1'));
});

test('every character of a VNC secret is equally likely', () => {
  const counts = new Map<string, number>();
  const secretOf = createVncSecret(KEY);
  for (let n = 0; n < 5000; n += 1)
    for (const character of secretOf(`wl_${n}`))
      counts.set(character, (counts.get(character) ?? 0) + 1);
  const expected = (5000 * 8) / 62;
  const chiSquare = [...counts.values()].reduce(
    (sum, n) => sum + (n - expected) ** 2 / expected,
    0,
  );
  expect(counts.size).toBe(62);
  expect(chiSquare).toBeLessThan(110); // 61 degrees of freedom: 1 in 10,000 where it is fair
});

test('a session’s URLs have the specified form, the port written out', () => {
  const urls = createUrls({ wsUrl: 'ws://b.example', wssUrl: 'wss://b.example:443/g/', tickets });
  const [cdp, vnc] = [tickets.issue('cdp', ...ids), tickets.issue('vnc', ...ids)];
  expect(urls.cdpUrl(session, null)).toBe(`ws://b.example:80/devtools/browser/${cdp}`);
  expect(urls.vncUrl(session, null)).toBe(`wss://b.example:443/g/vnc/${vnc}/websockify`);
  expect(urls.viewerUrl(session, null)).toBe(`https://b.example:443/g/vnc/${vnc}/`);
  expect(urls.viewerUrl(session, null, 'pass word')).toMatch(/\/#password=pass%20word$/);
});

test('a URL has the session’s epoch and the caller’s key', () => {
  const urls = createUrls({ wsUrl: 'ws://b.example', wssUrl: 'wss://b.example', tickets });
  const rotated = { ...session, accessEpoch: 3 };
  for (const url of [
    urls.cdpUrl(rotated, KEY_HASH),
    urls.vncUrl(rotated, KEY_HASH),
    urls.viewerUrl(rotated, KEY_HASH),
  ]) {
    const [ticket = ''] = /[\w-]{90,}/.exec(url) ?? [];
    expect(tickets.open(ticket)).toMatchObject({ sessionId: ids[1], epoch: 3, holder });
  }
});

test('the URLs of a share and of a hand-off have their grant', () => {
  const urls = createUrls({ wsUrl: 'ws://b.example', wssUrl: 'wss://b.example', tickets });
  for (const grant of [{ kind: 'share', id: 'a' } as const, { kind: 'handoff', id: 'b' } as const])
    for (const url of [
      urls.vncUrl(session, null, grant),
      urls.viewerUrl(session, null, 'password', grant),
    ]) {
      const [ticket = ''] = /[\w-]{30,}/.exec(url) ?? [];
      expect(tickets.open(ticket)).toMatchObject({ kind: 'vnc', holder: null, grant });
    }
});

test('on loopback the viewer’s URL is plain HTTP, since browsers reject the certificate', () => {
  const options = { wssUrl: 'wss://127.0.0.1:8443', tickets };
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    const urls = createUrls({ wsUrl: `ws://${host}:8081`, ...options });
    expect(urls.viewerUrl(session, null)).toContain(`http://${host}:8081/vnc/`);
  }
});

test('an invalid public address throws', () => {
  for (const odd of ['', 'b.example', 'http://b.example', 'ws:'])
    expect(() => publicPrefix(odd)).toThrow(RangeError);
});
