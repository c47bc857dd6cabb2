import type { IncomingMessage } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { createPlaces } from '#src/kernel/async/places.ts';
import { reject } from '#src/kernel/errors.ts';
import { createBidiGate, type BidiGate } from './bidi/bidi-gate.ts';
import type { AllowedOrigins } from './access/allowed-origins.ts';
import { createRequestCounter } from './access/request-counter.ts';
import { createTicketAdmission, type TicketAdmission } from './access/ticket-admission.ts';
import type { ConnectionSummary } from './connections/connection.ts';
import {
  createConnections,
  type ConnectionCounters,
  type Connections,
} from './connections/connections.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createSocketPlaces } from './connections/socket-places.ts';
import { rejectUpgrade } from './error-response.ts';
import { portDoor, publicDoor, type Door } from './door.ts';
import { createHttpHandler } from './http.ts';
import {
  createDebuggerPorts,
  type DebuggerPorts,
  type DebuggerPortsOptions,
} from './ports/debugger-ports.ts';
import { defaultLimits, type GatewayLimits } from './connections/limits.ts';
import type { Hold } from './connections/steering.ts';
import { startListener, type Handlers, type ListenOn } from './listeners.ts';
import type { KeyDirectory } from './access/key-directory.ts';
import type { SessionDirectory } from './access/session-directory.ts';
import type { Grant, Ticket, TicketKind, Tickets } from './access/ticket.ts';
import { leaveOutWorthless, type WorthlessTickets } from './access/worthless-tickets.ts';
import { createUpgradeHandler } from './upgrade.ts';
import { trustProxies } from './proxies.ts';
import { publicPrefix } from './access/urls.ts';
import { createViewer } from './vnc/viewer.ts';
import { createVncGate } from './vnc/vnc.ts';
import type { CommandOutcome } from './webdriver/commands.ts';
import { createDriverAgents, type DriverAgents } from './webdriver/driver-agents.ts';
import { createUseRecorder } from './webdriver/record-use.ts';

/** Receives the gateway's measurements. No method may throw. */
export type GatewayMetrics = {
  /** @param joinedMs from the client's handshake to the browser's answer */
  opened(kind: TicketKind, sessionId: string, joinedMs: number): void;
  closed(kind: TicketKind, fact: ConnectionSummary): void;
  refused(status: number): void;
  /** A command of WebDriver. */
  commanded(outcome: CommandOutcome): void;
};

export type GatewayOptions = {
  /** Port 0 takes a free one. */
  listen: { host: string; port: number };
  tls?: Required<Omit<ListenOn, 'methodsInAnyCase'>>;
  /** Public URLs of the two listeners; default: their own addresses. */
  publicUrls?: { ws: string; wss: string };
  /** Addresses and networks of proxies whose headers are trusted; default: none. */
  trustedProxies?: readonly string[];
  tickets: Tickets;
  sessions: SessionDirectory;
  keys: KeyDirectory;
  /** Default: no page may embed a shared screen. */
  allowedOrigins?: AllowedOrigins;
  /** Default: sessions get no ports of their own. */
  debuggerPorts?: DebuggerPortsOptions | null;
  limits?: Partial<GatewayLimits>;
  /**
   * Called when a session is in use: at each connect, then at most once a minute while bytes flow.
   * Must not throw.
   */
  onAccess: (session: { organizationId: string; sessionId: string }, via: TicketKind) => void;
  /** Called at each connection by the address of a share. Must not throw. */
  onShareUse?: (session: { organizationId: string; sessionId: string }, shareId: string) => void;
  log: Logger;
  metrics?: GatewayMetrics;
  /** Milliseconds since the epoch, for the windows of the rate limit; default Date.now. */
  now?: () => number;
};

export type GatewayCounters = ConnectionCounters & {
  /** Requests and handshakes refused, by status. */
  refused: Record<number, number>;
};

export type Gateway = {
  address: AddressInfo;
  tlsAddress: AddressInfo | null;
  /** Ends all of a session's connections; returns how many. `reason`: the session's end reason. */
  closeSession(organizationId: string, sessionId: string, reason: string): number;
  /** Ends the session's connections whose tickets are of a lower epoch; returns how many. */
  closeRotated(organizationId: string, sessionId: string, epoch: number): number;
  /** Ends the session's connections of a share or a hand-off that is over; returns how many. */
  closeGrant(organizationId: string, sessionId: string, grant: Grant): number;
  /**
   * A person has taken the session, as of this event; null: no person has. While a person has it,
   * CDP is not read, and other viewers only watch.
   */
  hold(organizationId: string, sessionId: string, hold: Hold | null, sequence: number): void;
  /** Ends the organization's connections of keys that are not live; returns how many. */
  closeRevoked(organizationId: string, liveHolders: ReadonlySet<string>): number;
  /** From now on new requests get 503; open connections stay open until disposal. */
  drain(): void;
  /** Replaces the TLS listener's certificate, from the next handshake on. */
  setCertificate(certificate: { key: string; cert: string }): void;
  /** The processes that speak WebDriver BiDi for clients. */
  bidiPids(): number[];
  counters(): GatewayCounters;
} & AsyncDisposable;

/** Sockets beyond those of connections: plain requests, and rejections that are being sent. */
const OTHER_SOCKETS_MAX = 1_000;

/**
 * Starts the listeners and connects clients that have a session's ticket to its browser. Disposal
 * ends every connection and resolves within 2 s.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { log, tls } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const refusedByStatus: Record<number, number> = {};
  let isDraining = false;
  const now = options.now ?? Date.now;
  const connections = createConnections(limits, connectionHooks(options), now);
  const tickets = leaveOutWorthless(options.tickets, now);
  const admission = createTicketAdmission({
    tickets,
    sessions: options.sessions,
    keys: options.keys,
    connections,
    lookupTimeoutMs: limits.lookupTimeoutMs,
    now,
    isDraining: () => isDraining,
    log,
  });
  function refused(status: number): void {
    refusedByStatus[status] = (refusedByStatus[status] ?? 0) + 1;
    options.metrics?.refused(status);
  }
  const prefixes = {
    ws: () => publicPrefix(options.publicUrls?.ws ?? urlOf('ws', plain.address)),
    wss: () => publicPrefix(options.publicUrls?.wss ?? urlOf('wss', (secure ?? plain).address)),
  };
  await using started = new AsyncDisposableStack();
  const agents = started.use(createDriverAgents(limits.dialTimeoutMs));
  const bidi = createBidiGate(limits, log);
  const parts = { tickets, admission, bidi, limits, refused, agents };
  const serve = await createServing(options, parts);
  const ports = options.debuggerPorts
    ? createPorts(options.debuggerPorts, (door) => serve(door, null))
    : null;
  const proxies = trustProxies(options.trustedProxies ?? []);
  const door = publicDoor((request) => prefixes[proxies.isSecure(request) ? 'wss' : 'ws']());
  const handlers = serve(door, ports);
  const socketsMax = limits.connections + OTHER_SOCKETS_MAX;
  started.use(connections);
  if (ports !== null) started.use(ports);
  const plain = started.use(await startListener(options.listen, handlers, socketsMax));
  const secure =
    tls === undefined ? null : started.use(await startListener(tls, handlers, socketsMax));
  const running = started.move();

  return {
    address: plain.address,
    tlsAddress: secure?.address ?? null,
    ...endingsOf(connections, ports),
    closeGrant: (organizationId, sessionId, grant) =>
      connections.endGrant(organizationId, sessionId, grant),
    hold: (organizationId, sessionId, hold, sequence) =>
      connections.hold({ organizationId, sessionId }, hold, sequence),
    drain() {
      isDraining = true;
    },
    setCertificate: (certificate) => secure?.setCertificate(certificate),
    bidiPids: () => bidi.pids(),
    counters: () => ({ ...connections.counters(), refused: { ...refusedByStatus } }),
    async [Symbol.asyncDispose]() {
      isDraining = true;
      connections.endAll('gateway_closing');
      await running.disposeAsync();
    },
  };
}

/** What ends a session's connections ends its ports, too. */
function endingsOf(
  connections: Connections,
  ports: DebuggerPorts | null,
): Pick<Gateway, 'closeSession' | 'closeRotated' | 'closeRevoked'> {
  return {
    closeSession(organizationId, sessionId, reason) {
      ports?.closeSession(organizationId, sessionId);
      return connections.endSession(organizationId, sessionId, reason);
    },
    closeRotated(organizationId, sessionId, epoch) {
      ports?.closeSession(organizationId, sessionId, epoch);
      return connections.endSession(organizationId, sessionId, 'access_rotated', epoch);
    },
    closeRevoked(organizationId, liveHolders) {
      ports?.closeRevoked(organizationId, liveHolders);
      return connections.endRevoked(organizationId, liveHolders, 'key_revoked');
    },
  };
}

function createPorts(options: DebuggerPortsOptions, serve: (door: Door) => Handlers) {
  return createDebuggerPorts(options, (ticket, at) => serve(portDoor(ticket, options.host, at)));
}

/** What listeners call, by the door: limits first, then plain requests and handshakes. */
async function createServing(
  options: GatewayOptions,
  parts: {
    agents: DriverAgents;
    tickets: WorthlessTickets;
    admission: TicketAdmission;
    bidi: BidiGate;
    limits: GatewayLimits;
    refused(status: number): void;
  },
): Promise<(door: Door, ports: DebuggerPorts | null) => Handlers> {
  const { trustedProxies = [], log, now = Date.now, allowedOrigins = nowhere } = options;
  const { tickets, limits, admission, agents } = parts;
  const proxies = trustProxies(trustedProxies);
  const clientOf = (request: IncomingMessage) => proxies.clientOf(request);
  const requests = createRequestCounter({ tickets, clientOf, limits, now });
  const places = createSocketPlaces(limits.socketsPerAddress, proxies);
  const viewer = await createViewer();
  const vnc = createVncGate(limits);
  const { dialTimeoutMs, bodySilentMs, accessEveryMs, documentBytes } = limits;
  const documents = createPlaces({ max: documentBytes });
  const shared = { ...parts, requests, places, documents, dialTimeoutMs, log };
  const hooks = commandHooks(options, accessEveryMs);
  const commands = { admission, agents, log, bodySilentMs, ...hooks };
  return (door, ports) => ({
    onRequest: createHttpHandler({ ...shared, door, ports, viewer, allowedOrigins, commands }),
    onUpgrade: createUpgradeHandler({ ...shared, door, vnc, clientOf }),
    onMalformed(socket) {
      const address = socket instanceof Socket ? (socket.remoteAddress ?? '') : '';
      const { headers, refusal } = requests.countMalformed(address);
      rejectUpgrade(socket, refusal ?? reject('INVALID_REQUEST'), headers);
    },
    onSocket: (socket) => places.enter(socket),
  });
}

async function nowhere(): Promise<readonly string[]> {
  return [];
}

function connectionHooks({ log, metrics, onAccess, onShareUse }: GatewayOptions) {
  return {
    opened({ kind, organizationId, sessionId, grant }: Ticket, joinedMs: number) {
      metrics?.opened(kind, sessionId, joinedMs);
      if (grant?.kind === 'share') onShareUse?.({ organizationId, sessionId }, grant.id);
    },
    closed({ organizationId, sessionId, kind }: Ticket, fact: ConnectionSummary) {
      log.debug({ organizationId, sessionId, kind, ...fact }, 'connection closed');
      metrics?.closed(kind, fact);
    },
    accessed: ({ organizationId, sessionId, kind }: Ticket) =>
      onAccess({ organizationId, sessionId }, kind),
  };
}

function commandHooks({ metrics, onAccess, now = Date.now }: GatewayOptions, everyMs: number) {
  const used = ({ organizationId, sessionId, kind }: Ticket) =>
    onAccess({ organizationId, sessionId }, kind);
  return {
    used: createUseRecorder(used, { everyMs, now }),
    counted: (outcome: CommandOutcome) => metrics?.commanded(outcome),
  };
}

function urlOf(scheme: string, { address, family, port }: AddressInfo): string {
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
