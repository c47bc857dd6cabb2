import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createListener, type Server as Listener, type Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { SIZES_SCRIPT } from '../chromium/window.ts';
import { ACCEPTED } from './accepted.ts';
import { simulatedPicture } from './picture.ts';

/**
 * One CDP server for all simulated browsers. Each listens on a port of its own, so that documents
 * and WebSockets there are its own.
 */
export type SimulatedCdp = {
  /**
   * @param screen the screen's size as the page sees it; it may be changed later
   * @returns the port of the new browser and the path of its WebSocket
   */
  add(workloadId: string, screen: Screen): Promise<{ port: number; path: string }>;
  /** Disconnects the clients of a browser and forgets it. */
  remove(workloadId: string): void;
} & AsyncDisposable;

type Screen = { width: number; height: number };
type Target = {
  workloadId: string;
  port: number;
  listener: Listener;
  browserPath: string;
  /** Ids of its pages, the first one open from the start. */
  pages: Set<string>;
  screen: Screen;
  /** Size of the window and of its page: there are no bars. */
  window: Screen;
  clients: Set<WebSocket>;
  /** Those that are attached to each page. */
  attaching: Set<WebSocket>;
};
type Command = {
  id?: unknown;
  method?: unknown;
  sessionId?: unknown;
  params?: {
    expression?: unknown;
    bounds?: Partial<Screen>;
    targetId?: unknown;
    maxWidth?: unknown;
  };
};

/** Called for commands that end a browser, after the reply has been sent. */
export type SimulatedCdpHooks = {
  onClose(workloadId: string): void;
  onCrash(workloadId: string): void;
};

const MESSAGE_BYTES_MAX = 1024 * 1024;
const VERSION = {
  Browser: 'Simulated/1.0',
  'Protocol-Version': '1.3',
  'User-Agent': 'Simulated/1.0',
  'V8-Version': '0',
  'WebKit-Version': '0',
};
/** Error codes of JSON-RPC, which CDP uses. */
const METHOD_NOT_FOUND = -32_601;
const PARSE_ERROR = -32_700;

/** Opens the server; the browsers are added one by one. */
export function openSimulatedCdp(hooks: SimulatedCdpHooks): SimulatedCdp {
  const byWorkload = new Map<string, Target>();
  const byPort = new Map<number, Target>();
  const connections = new Set<Socket>();
  const askedBy = ({ socket }: IncomingMessage) => byPort.get(socket.localPort ?? 0);
  // It listens nowhere itself: the browsers' listeners pass their connections to it.
  const server = createServer((request, response) =>
    answerHttp(request, response, askedBy(request)),
  );
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
  });
  server.on('upgrade', (request, socket, head) => {
    const target = askedBy(request);
    socket.on('error', () => socket.destroy());
    if (target === undefined || target.browserPath !== request.url) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => serve(client, target, hooks));
  });
  function accept(socket: Socket): void {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    server.emit('connection', socket);
  }
  function remove(workloadId: string): void {
    const target = byWorkload.get(workloadId);
    if (target === undefined) return;
    byWorkload.delete(workloadId);
    byPort.delete(target.port);
    target.listener.close();
    for (const client of target.clients) client.terminate();
  }

  return {
    add: async (workloadId, screen) => {
      const listener = createListener(accept);
      const port = await listen(listener);
      const target = {
        workloadId,
        port,
        listener,
        browserPath: `/devtools/browser/${randomUUID()}`,
        pages: new Set([randomUUID()]),
        screen,
        window: { ...screen },
        clients: new Set<WebSocket>(),
        attaching: new Set<WebSocket>(),
      };
      byWorkload.set(workloadId, target);
      byPort.set(port, target);
      return { port, path: target.browserPath };
    },
    remove,
    [Symbol.asyncDispose]: async () => {
      for (const workloadId of byWorkload.keys()) remove(workloadId);
      for (const socket of connections) socket.destroy();
    },
  };
}

/** Listens on a free loopback port; returns it. */
async function listen(listener: Listener): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(0, '127.0.0.1', resolve);
  });
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function answerHttp(request: IncomingMessage, response: ServerResponse, target?: Target): void {
  const { host = '127.0.0.1' } = request.headers;
  const body = target === undefined ? null : documentAt(request.url ?? '', host, target);
  if (body === null) {
    response.writeHead(404, { 'content-type': 'text/html' }).end();
    return;
  }
  response.setHeader('content-type', 'application/json; charset=UTF-8');
  response.end(JSON.stringify(body)); // with its length, as Chromium answers
}

function documentAt(url: string, host: string, target: Target): unknown {
  const [path = ''] = url.split('?');
  switch (path.replace(/\/$/, '')) {
    case '/json/version':
      return { ...VERSION, webSocketDebuggerUrl: `ws://${host}${target.browserPath}` };
    case '/json':
    case '/json/list':
      return [...target.pages].map((id) => ({
        id,
        type: 'page',
        title: 'about:blank',
        url: 'about:blank',
        description: '',
        webSocketDebuggerUrl: `ws://${host}/devtools/page/${id}`,
      }));
    default:
      return null;
  }
}

function serve(client: WebSocket, target: Target, hooks: SimulatedCdpHooks): void {
  target.clients.add(client);
  client.on('close', () => {
    target.clients.delete(client);
    target.attaching.delete(client);
  });
  client.on('error', () => client.terminate());
  client.on('message', (data) => {
    const command = parseCommand((data as Buffer).toString('utf8'));
    if (command?.method === 'Target.setAutoAttach') autoAttach(client, command, target);
    const pages = new Set(target.pages);
    for (const message of replies(command, target)) client.send(JSON.stringify(message));
    tellOfPages(pages, target);
    if (command?.method === 'Browser.close') hooks.onClose(target.workloadId);
    if (command?.method === 'Browser.crash') hooks.onCrash(target.workloadId);
  });
}

/** Attaches a client to the pages that are open, before the command is answered. */
function autoAttach(client: WebSocket, { sessionId }: Command, target: Target): void {
  if (sessionId !== undefined || target.attaching.has(client)) return;
  target.attaching.add(client);
  for (const id of target.pages) client.send(JSON.stringify(attachedTo(id)));
}

/** Tells the clients that are attached to each page of those that have opened or closed. */
function tellOfPages(before: ReadonlySet<string>, { pages, attaching }: Target): void {
  const opened = [...pages].filter((id) => !before.has(id)).map(attachedTo);
  const closed = [...before].filter((id) => !pages.has(id)).map(detachedFrom);
  for (const event of [...opened, ...closed])
    for (const client of attaching) client.send(JSON.stringify(event));
}

/** A page's CDP session has the id of the page. */
function attachedTo(id: string): object {
  const params = { sessionId: id, targetInfo: pageInfo(id), waitingForDebugger: false };
  return { method: 'Target.attachedToTarget', params };
}

function detachedFrom(id: string): object {
  return { method: 'Target.detachedFromTarget', params: { sessionId: id, targetId: id } };
}

function replies(command: Command | null, target: Target): unknown[] {
  if (command === null) return [{ error: { code: PARSE_ERROR, message: 'Message must be JSON' } }];
  const head = {
    id: command.id,
    ...(command.sessionId === undefined ? {} : { sessionId: command.sessionId }),
  };
  switch (command.method) {
    case 'Browser.getVersion':
      return [{ ...head, result: browserVersion }];
    case 'Browser.close':
    case 'Browser.crash':
      return [{ ...head, result: {} }];
    case 'Target.getTargets':
      return [{ ...head, result: { targetInfos: [...target.pages].map(pageInfo) } }];
    case 'Target.setDiscoverTargets':
      return [
        ...[...target.pages].map((id) => {
          return { method: 'Target.targetCreated', params: { targetInfo: pageInfo(id) } };
        }),
        { ...head, result: {} },
      ];
    case 'Target.attachToTarget':
      return [{ ...head, result: { sessionId: command.params?.targetId } }];
    case 'Target.createTarget': {
      const targetId = randomUUID();
      target.pages.add(targetId);
      return [{ ...head, result: { targetId } }];
    }
    case 'Target.closeTarget':
      return [
        { ...head, result: { success: target.pages.delete(String(command.params?.targetId)) } },
      ];
    case 'Storage.getCookies':
      return [{ ...head, result: { cookies: [] } }];
    case 'Browser.getWindowForTarget':
      return [{ ...head, result: { windowId: 1, bounds: target.window } }];
    case 'Browser.setWindowBounds':
      Object.assign(target.window, command.params?.bounds);
      return [{ ...head, result: {} }];
    case 'Page.captureScreenshot':
      return [{ ...head, result: { data: pictureOf(target).toString('base64') } }];
    case 'Page.startScreencast':
      return [{ ...head, result: {} }, ...screencast(command, target)];
    case 'Runtime.evaluate':
      return [{ ...head, result: { result: evaluate(command, target) } }];
    default: {
      if (ACCEPTED.has(command.method)) return [{ ...head, result: {} }];
      const message = `'${String(command.method)}' wasn't found`;
      return [{ ...head, error: { code: METHOD_NOT_FOUND, message } }];
    }
  }
}

/** The page is visible, and shows one frame. */
function screencast({ sessionId, params }: Command, target: Target): unknown[] {
  const data = pictureOf(target, Number(params?.maxWidth)).toString('base64');
  return [
    { method: 'Page.screencastVisibilityChanged', params: { visible: true }, sessionId },
    { method: 'Page.screencastFrame', params: { data, metadata: {}, sessionId: 1 }, sessionId },
  ];
}

/** A JPEG, no wider than asked for and than the page. */
function pictureOf({ workloadId, window }: Target, maxWidth = window.width): Buffer {
  const scale = maxWidth > 0 ? Math.min(1, maxWidth / window.width) : 1;
  const [width, height] = [window.width, window.height].map((side) => Math.round(side * scale));
  return simulatedPicture(workloadId, { width: width ?? 1, height: height ?? 1 });
}

/** Evaluates the only script that the simulation knows. */
function evaluate({ params }: Command, { screen, window }: Target): object {
  if (params?.expression !== SIZES_SCRIPT) return { type: 'undefined' };
  const size = [window.width, window.height];
  return {
    type: 'object',
    value: { screen: [screen.width, screen.height], outer: size, inner: size },
  };
}

const browserVersion = {
  protocolVersion: VERSION['Protocol-Version'],
  product: VERSION.Browser,
  revision: '0',
  userAgent: VERSION['User-Agent'],
  jsVersion: VERSION['V8-Version'],
};

function pageInfo(targetId: string): Record<string, unknown> {
  return {
    targetId,
    type: 'page',
    title: 'about:blank',
    url: 'about:blank',
    attached: false,
    canAccessOpener: false,
  };
}

function parseCommand(text: string): Command | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : null;
  } catch {
    return null;
  }
}
