import { jsonBody, partsOf, type Parts } from './parts.ts';
import type { Random } from './random.ts';
import { commonHeaders, type Route } from './route.ts';
import { hostileText, hostileValue } from './values.ts';
import type { World } from './world.ts';

/** MCP and W3C WebDriver, which describe themselves. */
export function protocolRoutes(): Route[] {
  return [...mcp, ...webDriver];
}

type Ask = (random: Random, world: World) => Partial<Parts> & { path: string };

function route(name: string, ask: Ask, more: Partial<Route> = {}): Route {
  const request = (random: Random, world: World): Parts => {
    const asked = ask(random, world);
    const headers: [string, string][] = [
      ...commonHeaders(random),
      ['authorization', `Bearer ${world.key}`],
      ['accept', 'application/json, text/event-stream'],
      ...(asked.body === undefined ? [] : [TYPE]),
      ...(asked.headers ?? []),
    ];
    return partsOf({ ...asked, headers });
  };
  const common = { at: 'api', documented: null, success: 'ok', needs: 'any' } as const;
  return { name, ...common, request, ...more };
}
const TYPE: [string, string] = ['content-type', 'application/json'];

const TOOLS = ['create_session', 'list_sessions', 'get_session', 'extend_session', 'stop_session'];
const message = (method: string, params: unknown, id: unknown = 1) =>
  jsonBody({ jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params });
const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'fuzz', version: '1' },
};

/** In an MCP session that goes on, where there is one. */
function inSession(world: World): [string, string][] {
  const ids = world.spare('mcp');
  if (ids === null) return [];
  world.keep('mcp', ids);
  return [['mcp-session-id', ids[0] ?? '']];
}

/** A zip with the file `a.txt`, which has three bytes. */
const ZIP =
  'UEsDBBQAAAAAAAAAIVzCQSQ1AwAAAAMAAAAFAAAAYS50eHRhYmNQSwECFAMUAAAAAAAAACFcwkEkNQMAAAAD' +
  'AAAABQAAAAAAAAAAAAAAgAEAAAAAYS50eHRQSwUGAAAAAAEAAQAzAAAAJgAAAAAA';

const mcp: Route[] = [
  route(
    'POST /mcp initialize',
    (random) => ({
      method: 'POST',
      path: '/mcp',
      ...message('initialize', random.chance(0.8) ? INITIALIZE : hostileValue(random)),
    }),
    {
      keep(world, { head }) {
        const [, id] = /^mcp-session-id: (\S+)$/im.exec(head) ?? [];
        if (id !== undefined) world.keep('mcp', [id]);
      },
    },
  ),
  route('POST /mcp tools/list', (random, world) => ({
    method: 'POST',
    path: '/mcp',
    headers: inSession(world),
    ...message('tools/list', random.chance(0.8) ? {} : hostileValue(random)),
  })),
  route('POST /mcp tools/call', (random, world) => {
    const name = random.pick([...TOOLS, hostileText(random)]);
    const session = { session_id: world.has.sessions[0]?.id };
    const given = random.pick<unknown>([session, {}, session, hostileValue(random)]);
    const params = { name: name === 'stop_session' ? 'get_session' : name, arguments: given };
    const headers = inSession(world);
    return { method: 'POST', path: '/mcp', headers, ...message('tools/call', params) };
  }),
  route('POST /mcp any', (random, world) => ({
    method: 'POST',
    path: '/mcp',
    headers: inSession(world),
    ...random.pick([
      jsonBody([{ jsonrpc: '2.0', method: 'notifications/initialized' }]),
      jsonBody({ jsonrpc: '2.0', method: 'notifications/initialized' }),
      message('ping', {}, random.pick<unknown>(['a', 1, 1.5, null, {}, '__proto__'])),
      message('resources/list', {}),
      message('notifications/cancelled', { requestId: hostileValue(random) }, undefined),
      jsonBody(hostileValue(random)),
      jsonBody(Array.from({ length: 50 }, () => ({ jsonrpc: '2.0', id: 1, method: 'ping' }))),
    ]),
  })),
  route('GET /mcp', (_, world) => ({ path: '/mcp', headers: inSession(world) })),
  route('DELETE /mcp', (_, world) => ({
    method: 'DELETE',
    path: '/mcp',
    headers: [['mcp-session-id', world.spare('mcp')?.[0] ?? 'none']],
  })),
];

const HUB = '/wd/hub';
const driven = (world: World): string => {
  const ids = world.spare('webdriver');
  if (ids === null) return 'none';
  world.keep('webdriver', ids);
  return ids[0] ?? '';
};

type Command = [method: string, path: string, body?: (random: Random) => unknown];
const COMMANDS: readonly Command[] = [
  ['GET', '/url'],
  ['POST', '/url', () => ({ url: 'data:text/html,<h1 id=a>Fuzz</h1>' })],
  ['GET', '/title'],
  ['GET', '/source'],
  ['GET', '/window'],
  ['GET', '/window/rect'],
  ['GET', '/cookie'],
  ['GET', '/screenshot'],
  ['GET', '/timeouts'],
  ['GET', '/se/files'],
  [
    'POST',
    '/element',
    (random) => ({ using: 'css selector', value: random.pick(['body', '::', '\u0000']) }),
  ],
  [
    'POST',
    '/execute/sync',
    (random) => ({
      script: random.chance(0.7) ? 'return 1' : random.pick(['throw 1', '(']),
      args: random.chance(0.5) ? [] : [hostileValue(random)],
    }),
  ],
  ['POST', '/actions', (random) => ({ actions: random.chance(0.5) ? [] : hostileValue(random) })],
  ['DELETE', '/actions'],
  ['POST', '/print', () => ({})],
  [
    'POST',
    '/se/file',
    (random) => ({ file: random.chance(0.7) ? ZIP : random.bytes(100).toString('base64') }),
  ],
  [
    'POST',
    '/timeouts',
    (random) => ({ script: random.chance(0.6) ? 1_000 : random.pick([-1, 1e308, 'x']) }),
  ],
];

const webDriver: Route[] = [
  route(`GET ${HUB}/status`, () => ({ path: `${HUB}/status` })),
  route(
    `POST ${HUB}/session`,
    (random) => ({
      method: 'POST',
      path: `${HUB}/session`,
      ...jsonBody({
        capabilities: random.pick<unknown>([
          { alwaysMatch: { browserName: 'chrome' } },
          {},
          { firstMatch: [{ 'goog:chromeOptions': { args: ['--headless', '--lang=fr'] } }] },
          { alwaysMatch: { unhandledPromptBehavior: 'accept', timeouts: { script: 1 } } },
          { alwaysMatch: hostileValue(random) },
        ]),
      }),
    }),
    {
      needs: 'real',
      keep(world, { body }) {
        const { value } = JSON.parse(body) as { value?: { sessionId?: string } };
        if (value?.sessionId !== undefined) world.keep('webdriver', [value.sessionId]);
      },
    },
  ),
  ...COMMANDS.map(([method, path, body]) =>
    route(
      `${method} ${HUB}/session/{id}${path}`,
      (random, world) => ({
        method,
        path: `${HUB}/session/${driven(world)}${path}`,
        ...(body === undefined ? {} : jsonBody(body(random))),
      }),
      { needs: 'real' },
    ),
  ),
  route(
    `DELETE ${HUB}/session/{id}`,
    (_, world) => ({
      method: 'DELETE',
      path: `${HUB}/session/${world.spare('webdriver')?.[0] ?? 'none'}`,
    }),
    { needs: 'real' },
  ),
  // Without a browser all of it is refused.
  route(
    `GET ${HUB}/session/{none}/url`,
    (random) => ({
      path: `${HUB}/session/${encodeURIComponent(hostileText(random).toWellFormed())}/url`,
    }),
    { success: 'none' },
  ),
  route(
    `POST ${HUB}/session refused`,
    (random) => ({
      method: 'POST',
      path: `${HUB}/session`,
      ...jsonBody({
        capabilities: random.pick<unknown>([
          { alwaysMatch: { browserName: 'firefox' } },
          1,
          { alwaysMatch: { x: 1 } },
          { firstMatch: [] },
          { alwaysMatch: { proxy: hostileValue(random) } },
        ]),
      }),
    }),
    { success: 'none' },
  ),
];
