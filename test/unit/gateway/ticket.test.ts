import { expect, test } from 'vitest';
import { createTickets } from '#src/gateway/access/ticket.ts';
import { createUrls, publicPrefix } from '#src/gateway/access/urls.ts';
import { createVncSecret } from '#src/gateway/access/vnc-secret.ts';

const KEY = Buffer.alloc(32, 1);
const tickets = createTickets(KEY);
const ids = ['org_acme-1', 'ses_0123456789abcdefghij'] as const;

test('a ticket opens in every process with the same key', () => {
  for (const kind of ['cdp', 'vnc'] as const) {
    const opened = createTickets(Buffer.from(KEY)).open(tickets.issue(kind, ...ids));
    expect(opened).toEqual({ kind, organizationId: ids[0], sessionId: ids[1] });
  }
});

test('a session always has the same ticket, and no two sessions or kinds share one', () => {
  expect(tickets.issue('cdp', ...ids)).toBe(tickets.issue('cdp', ...ids));
  const all = [
    tickets.issue('cdp', ...ids),
    tickets.issue('vnc', ...ids),
    tickets.issue('cdp', 'org_acme-2', ids[1]),
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
    'A'.repeat(195),
    'A'.repeat(1e6),
  ])
    expect(tickets.open(odd)).toBeNull();
});

test('the longest ids fit; an invalid id gets no ticket', () => {
  const long = 'x'.repeat(64);
  expect(tickets.open(tickets.issue('vnc', long, long))).toMatchObject({ sessionId: long });
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
  expect(urls.cdpUrl(...ids)).toBe(`ws://b.example:80/devtools/browser/${cdp}`);
  expect(urls.vncUrl(...ids)).toBe(`wss://b.example:443/g/vnc/${vnc}/websockify`);
  expect(urls.viewerUrl(...ids)).toBe(`https://b.example:443/g/vnc/${vnc}/`);
  expect(urls.viewerUrl(...ids, 'pass word')).toMatch(/\/#password=pass%20word$/);
});

test('on loopback the viewer’s URL is plain HTTP, since browsers reject the certificate', () => {
  const options = { wssUrl: 'wss://127.0.0.1:8443', tickets };
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    const urls = createUrls({ wsUrl: `ws://${host}:8081`, ...options });
    expect(urls.viewerUrl(...ids)).toContain(`http://${host}:8081/vnc/`);
  }
});

test('an invalid public address throws', () => {
  for (const odd of ['', 'b.example', 'http://b.example', 'ws:'])
    expect(() => publicPrefix(odd)).toThrow(RangeError);
});
