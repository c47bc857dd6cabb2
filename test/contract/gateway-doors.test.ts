import { expect, test } from 'vitest';
import { openSocket, refusal, startSession } from '#test/support/gateway.fixture.ts';

type Site = Awaited<ReturnType<typeof startSession>>;

const ticketOf = (site: Site): string => site.tickets.issue('cdp', 'org', 's1');

/** Each way to give a ticket beside the path: what is appended to the path, and the headers. */
const ways: [string, (ticket: string) => { query: string; headers: Record<string, string> }][] = [
  ['a query parameter', (ticket) => ({ query: `?a=b&ticket=${ticket}`, headers: {} })],
  ['a header', (ticket) => ({ query: '', headers: { 'x-bss-ticket': ticket } })],
  ['a bearer token', (ticket) => ({ query: '', headers: { authorization: `Bearer ${ticket}` } })],
];

test.each(ways)('Chromium’s own paths take the ticket as %s', async (_name, way) => {
  await using site = await startSession();
  const { query, headers } = way(ticketOf(site));
  const ask = async (path: string) => await fetch(`${site.http}${path}${query}`, { headers });
  const version = (await (await ask('/json/version')).json()) as Record<string, string>;
  const list = (await (await ask('/json')).json()) as Record<string, string>[];
  expect(await (await ask('/json/list/')).json()).toEqual(list);
  expect(await (await ask('/json/protocol')).json()).toEqual({ domains: [] });
  const paths = ['/devtools/browser', site.browser.endpoint.path, '/devtools/page/A1'];
  const ws = site.http.replace('http', 'ws');
  const addresses = [
    ...paths.map((path) => ({ url: `${ws}${path}${query}`, headers })),
    // Addresses of the answers are enough by themselves.
    { url: version['webSocketDebuggerUrl'] ?? '', headers: {} },
    { url: list[0]?.['webSocketDebuggerUrl'] ?? '', headers: {} },
    { url: `ws://${list[0]?.['devtoolsFrontendUrl']?.split('?ws=')[1]}`, headers: {} },
  ];
  for (const [n, { url, headers: sent }] of addresses.entries()) {
    const client = await openSocket(url, { headers: sent });
    await client.echoes(`by way ${n}`);
    client.socket.close();
  }
  await site.isClean();
  expect(site.browser.handshakes).toHaveLength(addresses.length);
  expect(JSON.stringify([site.logged, site.browser.handshakes])).not.toContain(ticketOf(site));
});

test('answers to a ticket in the query keep it there, with the browser’s own path before', async () => {
  await using site = await startSession();
  const ticket = ticketOf(site);
  const answer = await fetch(`${site.http}/json/version?ticket=${ticket}`);
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
  const path = `${site.browser.endpoint.path}?ticket=${ticket}`;
  const webSocketDebuggerUrl = `ws://127.0.0.1:${site.port}${path}`;
  expect(await answer.json()).toMatchObject({ webSocketDebuggerUrl });
});

test('a ticket in the path counts before all others, whatever they are', async () => {
  await using site = await startSession();
  const headers = { authorization: `Bearer ${'k'.repeat(40)}`, 'x-bss-ticket': 'x'.repeat(40) };
  const client = await openSocket(`${site.cdpUrl('s1')}?ticket=${'q'.repeat(40)}`, { headers });
  await client.echoes('by the path');
  client.socket.close();
});

test('a bare path is refused as its form with a ticket in the path', async () => {
  await using site = await startSession();
  const ws = site.http.replace('http', 'ws');
  const ended = site.tickets.issue('cdp', 'org', 'ended');
  site.directory.set('ended', { status: 'ended', reason: 'idle' });
  const expected = [
    ['', 404, 'NOT_FOUND'],
    [`?ticket=${'x'.repeat(40)}`, 404, 'NOT_FOUND'],
    // A ticket of the screen opens no browser.
    [`?ticket=${site.tickets.issue('vnc', 'org', 's1')}`, 404, 'NOT_FOUND'],
    [`?ticket=${ended}`, 410, 'SESSION_ENDED'],
  ] as const;
  for (const path of ['/devtools/browser', '/devtools/page/A1', site.browser.endpoint.path])
    for (const [query, status, error] of expected)
      expect(await refusal(`${ws}${path}${query}`)).toMatchObject({ status, body: { error } });
  for (const [query, status, error] of expected) {
    const answer = await fetch(`${site.http}/json/version${query}`);
    expect([answer.status, await answer.json()]).toMatchObject([status, { error }]);
  }
  // The path form with a browser's own id in place of the ticket.
  expect(await refusal(`${ws}${site.browser.endpoint.path}`)).toMatchObject({ status: 404 });
});

test('requests with a ticket in the query count for that ticket', async () => {
  await using site = await startSession({ limits: { requestsPerTicket: 2 } });
  const ask = async (query: string) => await fetch(`${site.http}/json/version${query}`);
  const query = `?ticket=${ticketOf(site)}`;
  expect((await ask(query)).headers.get('x-ratelimit-remaining')).toBe('1');
  await ask(query);
  const third = await ask(query);
  expect([third.status, await third.json()]).toMatchObject([429, { context: { of: 'ticket' } }]);
});

test('a page is opened by PUT alone, and no tab is touched while a person holds the session', async () => {
  await using site = await startSession();
  const query = `?ticket=${ticketOf(site)}`;
  const get = await fetch(`${site.http}/json/new${query}`);
  expect([get.status, get.headers.get('allow')]).toEqual([405, 'PUT']);
  const s1 = site.directory.get('s1');
  if (s1?.status !== 'active') throw new Error('not active');
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  site.directory.set('s1', { ...s1, handoff: { id: 'h1', status: 'taken', expiresAt } });
  const asked = [
    await fetch(`${site.http}/json/new${query}`, { method: 'PUT' }),
    await fetch(`${site.http}/json/close/A1${query}`),
    await fetch(`${site.http}/json/activate/A1${query}`),
  ];
  for (const answer of asked)
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { error: 'HANDOFF_CONFLICT' },
    ]);
  expect((await fetch(`${site.http}/json/list${query}`)).status).toBe(200);
});
