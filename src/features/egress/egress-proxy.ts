import type { lookup } from 'node:dns';
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { RequestError, Server, type PrepareRequestFunctionOpts } from 'proxy-chain';
import type { EgressRefusal, EgressRules } from '#events/egress.ts';
import { readAddress, readHost } from '#src/kernel/domain/egress/hosts.ts';
import { createJudge, type Verdict } from '#src/kernel/domain/egress/rules.ts';
import type { ResolveName } from '#src/kernel/host/resolve-name.ts';
import type { EgressProxy, IsPeer } from '#src/browsers/egress-endpoint.ts';
import type { IsClosed } from './closed-networks.ts';
import { createTrafficCount } from './count-traffic.ts';

export type EgressProxyOptions = {
  rules: EgressRules;
  /** The password for the rules' proxy. */
  password?: string;
  resolve: ResolveName;
  isClosed: IsClosed;
  /** Whether a name is one of the service, whatever it resolves to; absent: none is. */
  isOwnHost?: (host: string) => boolean;
};

/** Connections of a browser at once; Chromium opens some 32 to a proxy, and 255 WebSockets. */
const CONNECTIONS_MAX = 512;

/** Why nothing connects, with the host as it is counted. */
class Refused extends RequestError {
  readonly reason: EgressRefusal;
  constructor(reason: EgressRefusal, host: string) {
    super(`The session's egress rules refuse ${host}: ${reason}.\n`, 403, {
      'X-Egress-Refused': reason,
    });
    // The library answers with the status of errors of this name alone.
    this.name = 'RequestError';
    this.reason = reason;
  }
}

/**
 * Opens the proxy of one browser. Each request names a host, is judged by the rules, and connects
 * to an address that was judged, never to what a second look-up says. Nothing is kept open for
 * another request: its host would not be judged again.
 */
export function openEgressProxy(options: EgressProxyOptions): EgressProxy {
  const { rules } = options;
  const traffic = createTrafficCount();
  const connections = trackConnections(traffic.transferred);
  const agents = { httpAgent: new Agent(), httpsAgent: new TlsAgent() };
  const admit = createAdmission(options);
  const upstream = createUpstream(options);
  const guard = createGuard();
  const server = new Server({
    port: 0,
    host: '127.0.0.1',
    async prepareRequestFunction(asked) {
      const { connectionId, request } = asked;
      await guard.requirePeer(request.socket);
      const host = readHost(asked.hostname)?.text ?? 'invalid';
      connections.settle(connectionId, server);
      try {
        if (server.connections.size > CONNECTIONS_MAX) throw new Refused('too_many', host);
        const addresses = await admit(asked);
        traffic.connected(host);
        connections.begin(connectionId, host);
        if (rules.proxy === undefined)
          return { ...agents, dnsLookup: pinnedTo(addresses), upstreamProxyUrl: null };
        // Only what was judged: a proxy may read `0x7f.1` in another way.
        if (!asked.isHttp) request.url = placeOf(host, asked.port);
        return { ...agents, ...(await upstream()) };
      } catch (error) {
        if (error instanceof Refused) traffic.refused(host, error.reason);
        throw error;
      }
    },
  });
  server.on('connectionClosed', ({ connectionId, stats }: Closed) =>
    connections.end(connectionId, stats),
  );
  let listening: Promise<void> | null = null;
  const closing = new AbortController();
  return {
    async listen(isPeer) {
      if (listening === null) guard.ask(isPeer);
      listening ??= server.listen();
      await listening;
      return server.port;
    },
    closed: closing.signal,
    serve(socket) {
      guard.admit(socket);
      server.server.emit('connection', socket);
    },
    takeTraffic() {
      connections.settleAll(server);
      return traffic.take();
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      if (listening === null) server.closeConnections();
      else await server.close(true);
      agents.httpAgent.destroy();
      agents.httpsAgent.destroy();
    },
  };
}

const noPeer: IsPeer = async () => false;

/** Knows which connections are the browser's: others of the machine would use its way out. */
function createGuard() {
  const known = new WeakMap<Socket, Promise<boolean>>();
  let isPeer: IsPeer = noPeer;
  let underWay = 0;

  async function ask(socket: Socket): Promise<boolean> {
    const { remoteAddress, remotePort: clientPort = 0, localPort: serverPort = 0 } = socket;
    // A program at another address of loopback may have the same port as the browser.
    if (remoteAddress !== '127.0.0.1' || underWay >= CONNECTIONS_MAX) return false;
    underWay += 1;
    try {
      return await isPeer({ clientPort, serverPort }).catch(() => false);
    } finally {
      underWay -= 1;
    }
  }
  return {
    ask: (asked: IsPeer) => void (isPeer = asked),
    admit: (socket: Socket) => void known.set(socket, Promise.resolve(true)),
    /** @throws RequestError for a connection of another program */
    async requirePeer(socket: Socket): Promise<void> {
      const asked = known.get(socket) ?? ask(socket);
      known.set(socket, asked);
      if (!(await asked)) throw new RequestError('This proxy is of another browser.\n', 403);
    },
  };
}

type Asked = Pick<PrepareRequestFunctionOpts, 'hostname' | 'port'>;

/**
 * Judges a request. Resolves with the addresses that it may connect to.
 * @throws Refused
 */
function createAdmission({ rules, resolve, isClosed, isOwnHost }: EgressProxyOptions) {
  const judge = createJudge(rules);

  return async ({ hostname, port }: Asked): Promise<string[]> => {
    const host = readHost(hostname);
    if (host === null) throw new RequestError('The request names no host.\n', 400);
    if (host.kind === 'address') {
      insist(judge.address(host.address, port), host.text);
      if (await isClosed(host.text)) throw new Refused('private_network', host.text);
      return [host.text];
    }
    // A name that is not allowed is not looked up either: questions would carry data outside.
    insist(judge.name(host.text, port), host.text);
    if (isOwnHost?.(host.text) === true) throw new Refused('private_network', host.text);
    const found = await resolve(host.text);
    if (found.length === 0) throw new Refused('unresolved', host.text);
    const open = await openOf(found, isClosed);
    if (open.length === 0) throw new Refused('private_network', host.text);
    const left = open.filter((text) => {
      const address = readAddress(text);
      return address !== null && !judge.deniesAddress(address, port);
    });
    if (left.length === 0) throw new Refused('denied', host.text);
    return left;
  };
}

async function openOf(found: readonly string[], isClosed: IsClosed): Promise<string[]> {
  const closed = await Promise.all(found.map(async (address) => isClosed(address)));
  return found.filter((_, at) => closed[at] !== true);
}

function insist(verdict: Verdict, host: string): void {
  if (verdict !== 'allowed') throw new Refused(verdict, host);
}

/** The rules' proxy, which is reached at an address that was judged, as any other host. */
function createUpstream(options: EgressProxyOptions) {
  const { password, resolve, isClosed, isOwnHost } = options;
  const { proxy } = options.rules;
  return async () => {
    const url = new URL(proxy?.server ?? '');
    const host = readHost(url.hostname);
    if (host === null) throw new RangeError('the proxy has no host');
    const found = host.kind === 'address' ? [host.text] : await resolve(host.text);
    const open = await openOf(found, isClosed);
    const [first] = open;
    if (first === undefined || isOwnHost?.(host.text) === true)
      throw new Refused('private_network', host.text);
    url.username = encodeURIComponent(proxy?.username ?? '');
    url.password = encodeURIComponent(password ?? '');
    // SOCKS takes no look-up function; a certificate, which HTTPS has, is for the name.
    if (url.protocol === 'socks5:') url.hostname = first.includes(':') ? `[${first}]` : first;
    return { dnsLookup: pinnedTo(open), upstreamProxyUrl: url.href };
  };
}

function placeOf(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** A look-up function that knows these addresses alone. */
function pinnedTo(addresses: readonly string[]): typeof lookup {
  const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const [first] = all;
  const look: LookupFunction = (_, options, callback) => {
    if (options.all === true) callback(null, all);
    else callback(null, first?.address ?? '', first?.family);
  };
  // Its form for promises is not called.
  return look as typeof lookup;
}

type Stats = { trgTxBytes: number | null; trgRxBytes: number | null };
type Closed = { connectionId: number; stats: Stats | undefined };

/**
 * Attributes the bytes of each of the browser's connections to the host of its last request: a
 * tunnel has one, and plain HTTP one after the other.
 */
function trackConnections(
  transferred: (host: string, bytes: { bytesSent: number; bytesReceived: number }) => void,
) {
  const open = new Map<number, { host: string; sent: number; received: number }>();

  function settleTo(id: number, stats: Stats | undefined): void {
    const known = open.get(id);
    if (known === undefined || stats === undefined) return;
    const [sent, received] = [stats.trgTxBytes ?? 0, stats.trgRxBytes ?? 0];
    transferred(known.host, {
      bytesSent: Math.max(0, sent - known.sent),
      bytesReceived: Math.max(0, received - known.received),
    });
    open.set(id, { host: known.host, sent, received });
  }
  function settle(id: number, server: Server): void {
    settleTo(id, server.getConnectionStats(id));
  }
  return {
    settle,
    settleAll: (server: Server) => [...open.keys()].forEach((id) => settle(id, server)),
    begin(id: number, host: string): void {
      const { sent = 0, received = 0 } = open.get(id) ?? {};
      open.set(id, { host, sent, received });
    },
    end(id: number, stats: Stats | undefined): void {
      settleTo(id, stats);
      open.delete(id);
    },
  };
}
