import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import {
  HALF_A_HEADER,
  isClosed,
  openAfter,
  startWithPorts,
} from '#test/support/gateway/debugger-ports.ts';
import { openSocket, refusal, startSession } from '#test/support/gateway.fixture.ts';

/** The first bytes of the answer to these. */
function rawAnswer(address: string, bytes: string): Promise<string> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) }, () => socket.write(bytes));
    socket.on('error', reject);
    socket.once('data', (chunk) => {
      socket.destroy();
      resolve(chunk.toString('latin1'));
    });
  });
}

test('a session has a port that takes Chromium’s own paths without a ticket', async () => {
  const { site, ports, ask, ticket } = await startWithPorts(2);
  await using _ = site;
  const { address } = await ask('POST', ticket('s1'));
  expect(ports.map((port) => `127.0.0.1:${port}`)).toContain(address);
  expect(await ask('POST', ticket('s1'))).toMatchObject({ status: 200, body: { address } });
  const version = (await (await fetch(`http://${address}/json/version`)).json()) as object;
  expect(version).toMatchObject({
    webSocketDebuggerUrl: `ws://${address}${site.browser.endpoint.path}`,
  });
  const list = (await (await fetch(`http://${address}/json/list`)).json()) as object[];
  expect(list[0]).toMatchObject({
    webSocketDebuggerUrl: `ws://${address}/devtools/page/A1`,
    devtoolsFrontendUrl: `https://inspector.example/x.html?ws=${address}/devtools/page/A1`,
  });
  expect(JSON.stringify([version, list])).not.toContain(ticket('s1'));
  for (const path of [site.browser.endpoint.path, '/devtools/browser', '/devtools/page/A1']) {
    const client = await openSocket(`ws://${address}${path}`);
    await client.echoes(`to ${path}`);
    client.socket.close();
  }
  expect(await rawAnswer(address, 'get /json/version HTTP/1.1\r\nHost: localhost\r\n\r\n')).toMatch(
    /^HTTP\/1.1 200 /,
  );
  for (const path of ['/', `/devtools/browser/${ticket('s1')}`, '/viewer/viewer.js'])
    expect((await fetch(`http://${address}${path}`)).status).toBe(404);
  await site.isClean();
  expect(site.accesses).toContain('s1 cdp');
});

test('pages of a browser may not use a session’s port, by whatever name', async () => {
  const { site, ask, ticket } = await startWithPorts(2);
  await using _ = site;
  const { address } = await ask('POST', ticket('s1'));
  const status = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const asked = request(`http://${address}/json/list`, { headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      });
      asked.on('error', reject).end();
    });
  const port = address.split(':')[1] ?? '';
  const fetched = (site: string, mode: string, dest: string) => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  });
  const chromedriver = fetched('none', 'no-cors', 'empty');
  for (const headers of [
    {},
    { host: `localhost:${port}` },
    { host: `[::1]:${port}` },
    chromedriver,
  ])
    expect(await status(headers)).toBe(200);
  for (const headers of [
    { host: `rebound.example:${port}` },
    { origin: 'http://127.0.0.1:9' },
    { 'sec-fetch-site': 'none' },
    fetched('none', 'navigate', 'document'),
    fetched('none', 'cors', 'empty'),
    ...['cross-site', 'same-site', 'same-origin'].map((it) => fetched(it, 'no-cors', 'empty')),
    { ...chromedriver, origin: 'http://127.0.0.1:9' },
    { ...chromedriver, host: `rebound.example:${port}` },
    { 'upgrade-insecure-requests': '1' },
    { referer: 'http://127.0.0.1:9/' },
  ])
    expect(await status(headers)).toBe(403);
  const ofPage = openSocket(`ws://${address}/devtools/browser`, {
    headers: { origin: 'https://page.example' },
  });
  await expect(ofPage).rejects.toThrow('403');
});

test('a port closes with the session, the key, the rotation, or on demand', async () => {
  const { site, ask, ticket } = await startWithPorts(8);
  await using _ = site;
  const s1 = site.directory.get('s1');
  if (s1 === undefined) throw new Error('no session');
  const ends: [string, (id: string) => unknown][] = [
    ['ended', (id) => site.gateway.closeSession('org', id, 'user')],
    ['rotated', (id) => site.gateway.closeRotated('org', id, 1)],
    ['revoked', () => site.gateway.closeRevoked('org', new Set(['a'.repeat(12)]))],
  ];
  for (const [id, end] of ends) {
    site.directory.set(id, s1);
    const { address } = await ask('POST', ticket(id, `${id}xxxxxxxxxxxx`.slice(0, 12)));
    const other = await ask('POST', ticket('s1'));
    const driver = await openSocket(`ws://${address}/devtools/browser`);
    end(id);
    await driver.closed;
    await expect.poll(() => isClosed(address)).toBe(true);
    expect(await isClosed(other.address)).toBe(false);
  }
  // Of whichever ticket of the session.
  const [mine, theirs] = [ticket('s1'), ticket('s1', 'b'.repeat(12))];
  const addresses = [(await ask('POST', mine)).address, (await ask('POST', theirs)).address];
  expect(new Set(addresses).size).toBe(2);
  const driver = await openSocket(`ws://${addresses[1]}/devtools/browser`);
  expect(await ask('DELETE', mine)).toMatchObject({ status: 200, body: { closed: 2 } });
  await driver.closed;
  expect(await Promise.all(addresses.map(isClosed))).toEqual([true, true]);
  expect(await ask('DELETE', mine)).toMatchObject({ body: { closed: 0 } });
  expect((await ask('POST', mine)).status).toBe(200);
});

test('the gateway ends though a client of a port has sent half a header', async () => {
  const { site, ask, ticket } = await startWithPorts(2);
  const { address } = await ask('POST', ticket('s1'));
  const clients = [await openAfter(address, ''), await openAfter(address, HALF_A_HEADER)];
  expect(await isClosed(address)).toBe(false);
  await site[Symbol.asyncDispose]();
  await Promise.all(clients.map(({ closed }) => closed));
});

test('two organizations leave ports to a third one; all used up is 429', async () => {
  const { site, ask, ticket } = await startWithPorts(4);
  await using _ = site;
  const s1 = site.directory.get('s1');
  if (s1 === undefined) throw new Error('no session');
  for (const id of ['s2', 's3', 's4', 's5']) site.directory.set(id, s1);
  const first = await ask('POST', ticket('s1'));
  expect(await ask('POST', ticket('s2'))).toMatchObject({
    status: 429,
    body: { error: 'DEBUGGER_PORT_LIMIT_EXCEEDED', context: { of: 'organization', limit: 1 } },
  });
  const others = ['second', 'third', 'fourth'];
  for (const [at, other] of others.entries()) {
    const { status } = await ask('POST', ticket(`s${at + 2}`, 'b'.repeat(12), other));
    expect(status).toBe(200);
  }
  expect(await ask('POST', ticket('s5', 'c'.repeat(12), 'fifth'))).toMatchObject({
    status: 429,
    body: { context: { of: 'gateway', limit: 4 } },
  });
  // A port whose session has ended is found, also if its end was missed.
  site.directory.set('s1', { status: 'ended', reason: 'user' });
  const next = await ask('POST', ticket('s3'));
  expect(next).toMatchObject({ status: 200, address: first.address });
});

test('a worthless ticket, and a gateway without such ports, get none', async () => {
  const { site, ask, ticket } = await startWithPorts(1);
  await using _ = site;
  site.directory.set('over', { status: 'ended', reason: 'idle' });
  expect((await ask('POST', 'x'.repeat(40))).status).toBe(404);
  expect((await ask('POST', ticket('unknown'))).status).toBe(404);
  expect((await ask('POST', ticket('over'))).status).toBe(410);
  expect((await ask('GET', ticket('s1'))).status).toBe(405);
  await using plain = await startSession();
  const query = `?ticket=${plain.tickets.issue('cdp', 'org', 's1')}`;
  const url = `${plain.http}/devtools/debugger-address${query}`;
  const refused = await fetch(url, { method: 'POST' });
  expect([refused.status, await refused.json()]).toMatchObject([
    501,
    { error: 'DEBUGGER_PORTS_OFF' },
  ]);
  expect(await refusal(url.replace('http', 'ws'))).toMatchObject({ status: 400 });
});
