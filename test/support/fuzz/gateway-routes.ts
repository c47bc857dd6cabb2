import { partsOf, type Parts } from './parts.ts';
import { hostileText } from './values.ts';
import type { Random } from './random.ts';
import { commonHeaders, type Route } from './route.ts';
import type { DrivenSession, World } from './world.ts';

/** The paths of the gateway; each process bounds the requests of a ticket. */
export function gatewayRoutes(): Route[] {
  return [
    ...documents,
    ...viewers,
    socket('CDP browser', ({ cdpPath }) => cdpPath),
    socket('CDP browser, below', ({ cdpPath }) => `${cdpPath}/`),
    socket(
      'CDP page',
      (session) => `/devtools/page/${ticketOf(session)}/${session.target}`,
      'real',
    ),
    socket('VNC', ({ vncPath }) => `${vncPath}websockify`),
    socket('VNC share', ({ sharePath }) => `${sharePath}websockify`),
    socket('BiDi', ({ bidiPath }) => bidiPath, 'real'),
    socket('BiDi session', ({ bidiPath }) => `${bidiPath}/session`, 'real'),
  ];
}

const ticketOf = ({ cdpPath }: DrivenSession) => cdpPath.split('/').at(-1) ?? '';
const NONE: DrivenSession = {
  ...{ id: 'none', cdpPath: '/devtools/browser/none', vncPath: '/vnc/none/', sharePath: '/vnc/x/' },
  ...{ bidiPath: '/devtools/bidi/none', target: 'none' },
};

type Ask = (session: DrivenSession) => Partial<Parts> & { path: string };

function plain(name: string, ask: Ask, more: Partial<Route> = {}): Route {
  const request = (random: Random, world: World): Parts => {
    const asked = ask(of(random, world));
    return partsOf({ ...asked, headers: [...commonHeaders(random), ...(asked.headers ?? [])] });
  };
  const common = { at: 'gateway', documented: null, success: 'ok', needs: 'any' } as const;
  return { name, ...common, request, ...more };
}

const of = (random: Random, { has: { sessions } }: World) =>
  sessions.length === 0 ? NONE : random.pick(sessions);

const documents: Route[] = [
  plain('json/version', ({ cdpPath }) => ({ path: `${cdpPath}/json/version` })),
  plain('json/list', ({ cdpPath }) => ({ path: `${cdpPath}/json/list` })),
  plain('json/protocol', ({ cdpPath }) => ({ path: `${cdpPath}/json/protocol` }), {
    needs: 'real',
  }),
  plain('json/version?ticket', (session) => ({
    path: '/json/version',
    query: [['ticket', ticketOf(session)]],
  })),
  plain('json/version by header', (session) => ({
    path: '/json/version',
    headers: [['x-bss-ticket', ticketOf(session)]],
  })),
  plain('PUT json/new', ({ cdpPath }) => ({ method: 'PUT', path: `${cdpPath}/json/new` }), {
    needs: 'real',
  }),
  plain(
    'json/activate',
    ({ cdpPath, target }) => ({ path: `${cdpPath}/json/activate/${target}` }),
    {
      needs: 'real',
    },
  ),
  plain('json/close', ({ cdpPath }) => ({ path: `${cdpPath}/json/close/ABCDEF` }), {
    success: 'none',
  }),
  plain(
    'debugger-address',
    (session) => ({
      method: 'POST',
      path: '/devtools/debugger-address',
      headers: [['x-bss-ticket', ticketOf(session)]],
    }),
    { success: 'none' },
  ),
  plain(
    'webdriver',
    (session) => ({
      method: 'POST',
      path: `/webdriver/${ticketOf(session)}/session`,
      body: Buffer.from('{}'),
    }),
    { success: 'none' },
  ),
];

const viewers: Route[] = [
  plain('viewer page', ({ vncPath: path }) => ({ path })),
  plain('viewer state', ({ vncPath }) => ({ path: `${vncPath}state` })),
  plain('shared page', ({ sharePath: path }) => ({ path })),
  plain('shared state', ({ sharePath }) => ({ path: `${sharePath}state` })),
  plain('viewer.js', () => ({ path: '/viewer/viewer.js' })),
  plain('novnc/core/rfb.js', () => ({ path: '/viewer/novnc/core/rfb.js' })),
  plain('unknown path', () => ({ path: '/unknown' }), { success: 'none' }),
];

/** A handshake; its own headers are hostile now and then. */
function socket(
  name: string,
  pathOf: (session: DrivenSession) => string,
  needs: Route['needs'] = 'any',
): Route {
  return {
    ...{ name: `WS ${name}`, at: 'gateway', documented: null, success: 'socket', needs },
    request(random, world) {
      const maybe = (header: string, value: string): [string, string] => [
        header,
        random.chance(0.03) ? hostileText(random) : value,
      ];
      const headers: [string, string][] = [
        ...commonHeaders(random),
        maybe('upgrade', 'websocket'),
        maybe('connection', 'Upgrade'),
        maybe('sec-websocket-version', '13'),
        maybe('sec-websocket-key', random.bytes(16).toString('base64')),
        ...(name.startsWith('VNC') ? [maybe('sec-websocket-protocol', 'binary')] : []),
        ...(random.chance(0.2) ? [maybe('sec-websocket-extensions', 'permessage-deflate')] : []),
      ];
      return partsOf({ path: pathOf(of(random, world)), headers });
    },
  };
}
