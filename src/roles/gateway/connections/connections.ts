import { performance } from 'node:perf_hooks';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import {
  createConnection,
  type Connection,
  type ConnectionSummary,
  type MonitoredConnection,
} from './connection.ts';
import { endOfGrant } from './close-codes.ts';
import type { Grant, Ticket, TicketKind } from '../access/ticket.ts';
import type { IdleLimits } from './idle-watch.ts';
import { createSteering, type Hold, type Steering } from './steering.ts';

export type ConnectionLimits = IdleLimits & {
  /** Maximum of this process, including connections that are still being dialled. */
  connections: number;
  /** Maximum of one organization. */
  connectionsPerOrganization: number;
  /** Maximum of one session. */
  connectionsPerSession: number;
  /** While bytes flow, a session's access is reported at most this often. */
  accessEveryMs: number;
};

/** Called for each connection that carries bytes. None may throw. */
export type ConnectionHooks = {
  /** @param joinedMs since the connection was admitted */
  opened(ticket: Ticket, joinedMs: number): void;
  closed(ticket: Ticket, fact: ConnectionSummary): void;
  /** Called at connect, then per session at most every `accessEveryMs` while bytes flow. */
  accessed(ticket: Ticket): void;
};

export type ConnectionCounters = {
  /** Admitted and not closed yet. */
  open: Record<TicketKind, number>;
  /** Spliced since the start. */
  total: Record<TicketKind, number>;
  /** Bytes from and to clients since the start. */
  bytesIn: number;
  bytesOut: number;
};

export type Connections = {
  /** A new connection, or a rejection if a limit is reached. */
  admit(ticket: Ticket): Connection | Rejection;
  /**
   * Ends a session's connections; returns how many.
   * @param belowEpoch only those whose tickets are of a lower epoch
   */
  endSession(
    organizationId: string,
    sessionId: string,
    reason: string,
    belowEpoch?: number,
  ): number;
  /** Ends a session's connections of this share or hand-off; returns how many. */
  endGrant(organizationId: string, sessionId: string, grant: Grant): number;
  /** The hand-off that is taken in a session, as of an event; null: none. */
  hold(
    session: Pick<Ticket, 'organizationId' | 'sessionId'>,
    hold: Hold | null,
    sequence: number,
  ): void;
  /** Ends an organization's connections whose holder is a key that is not live. */
  endRevoked(organizationId: string, liveHolders: ReadonlySet<string>, reason: string): number;
  endAll(reason: string): void;
  counters(): ConnectionCounters;
} & Disposable;

/** One session's connections. */
type Group = {
  connections: Set<MonitoredConnection>;
  accessedAtMs: number;
  steering: Steering;
};

/** @param now ms since the epoch */
function createGroup(now: () => number): Group {
  const connections = new Set<MonitoredConnection>();
  const steering = createSteering(now, () => {
    for (const connection of connections) connection.steeringChanged();
  });
  return { connections, accessedAtMs: 0, steering };
}

/**
 * All connections of this gateway: their limits, their byte counts, and the timer that checks them.
 * @param now ms since the epoch
 */
export function createConnections(
  limits: ConnectionLimits,
  hooks: ConnectionHooks,
  now: () => number,
): Connections {
  const groups = new Map<string, Group>();
  const byOrganization = new Map<string, number>();
  const open = { cdp: 0, vnc: 0 };
  const total = { cdp: 0, vnc: 0 };
  const gone = { in: 0, out: 0 };
  const sweeping = createSweeping(() => sweep(groups.values(), limits, hooks), limits.sweepMs);

  /** Changes the number of an organization's connections, and returns it. */
  function countOf(organizationId: string, by: number): number {
    const count = (byOrganization.get(organizationId) ?? 0) + by;
    if (count === 0) byOrganization.delete(organizationId);
    else byOrganization.set(organizationId, count);
    return count;
  }

  function add(ticket: Ticket, key: string, group: Group): Connection {
    const admittedAtMs = performance.now();
    const connection = createConnection(ticket, limits, {
      heldBy: () => group.steering.heldBy(),
      onSpliced(nowMs) {
        total[ticket.kind] += 1;
        group.accessedAtMs = nowMs;
        hooks.opened(ticket, nowMs - admittedAtMs);
        hooks.accessed(ticket);
      },
      onClosed(fact) {
        open[ticket.kind] -= 1;
        countOf(ticket.organizationId, -1);
        group.connections.delete(connection);
        if (group.connections.size === 0) {
          groups.delete(key);
          group.steering[Symbol.dispose]();
          if (groups.size === 0) sweeping.stop();
        }
        if (fact === null) return;
        gone.in += fact.bytesIn;
        gone.out += fact.bytesOut;
        hooks.closed(ticket, fact);
      },
    });
    open[ticket.kind] += 1;
    countOf(ticket.organizationId, 1);
    group.connections.add(connection);
    groups.set(key, group);
    sweeping.begin();
    return connection;
  }

  return {
    admit(ticket) {
      const key = keyOf(ticket.organizationId, ticket.sessionId);
      const group = groups.get(key) ?? createGroup(now);
      if (group.connections.size >= limits.connectionsPerSession)
        return tooMany('session', limits.connectionsPerSession);
      if (countOf(ticket.organizationId, 0) >= limits.connectionsPerOrganization)
        return tooMany('organization', limits.connectionsPerOrganization);
      if (open.cdp + open.vnc >= limits.connections) return tooMany('gateway', limits.connections);
      return add(ticket, key, group);
    },
    ...endingsOf(groups),
    hold: ({ organizationId, sessionId }, hold, sequence) =>
      groups.get(keyOf(organizationId, sessionId))?.steering.set(hold, sequence),
    counters: () => ({ open: { ...open }, total: { ...total }, ...bytesOf(all(groups), gone) }),
    [Symbol.dispose]: () => sweeping.stop(),
  };
}

function endingsOf(
  groups: ReadonlyMap<string, Group>,
): Pick<Connections, 'endSession' | 'endGrant' | 'endRevoked' | 'endAll'> {
  const ofSession = (organizationId: string, sessionId: string) => [
    ...(groups.get(keyOf(organizationId, sessionId))?.connections ?? []),
  ];
  return {
    endSession(organizationId, sessionId, reason, belowEpoch = Infinity) {
      const isBelow = ({ epoch }: Ticket) => epoch < belowEpoch;
      return end(ofSession(organizationId, sessionId).filter(isBelow), reason);
    },
    endGrant(organizationId, sessionId, { kind, id }) {
      const isOf = ({ grant }: Ticket) => grant?.kind === kind && grant.id === id;
      return end(ofSession(organizationId, sessionId).filter(isOf), endOfGrant[kind]);
    },
    endRevoked: (organizationId, liveHolders, reason) =>
      end(
        all(groups).filter((one) => isRevoked(one, organizationId, liveHolders)),
        reason,
      ),
    endAll: (reason) => void end(all(groups), reason),
  };
}

/** Ends the connections. @returns how many */
function end(connections: readonly MonitoredConnection[], reason: string): number {
  for (const connection of connections) connection.end(reason);
  return connections.length;
}

function isRevoked(
  { organizationId, holder }: Ticket,
  of: string,
  liveHolders: ReadonlySet<string>,
): boolean {
  return organizationId === of && holder !== null && !liveHolders.has(holder);
}

function bytesOf(connections: readonly MonitoredConnection[], gone: { in: number; out: number }) {
  const bytes = { bytesIn: gone.in, bytesOut: gone.out };
  for (const connection of connections) {
    const { fromClient, fromBrowser } = connection.bytes();
    bytes.bytesIn += fromClient;
    bytes.bytesOut += fromBrowser;
  }
  return bytes;
}

/** A copy: ending a connection removes it from its group. */
function all(groups: ReadonlyMap<string, Group>): MonitoredConnection[] {
  return [...groups.values()].flatMap((group) => [...group.connections]);
}

/** A sweep from time to time, while there are connections. */
function createSweeping(sweepAll: () => void, everyMs: number) {
  let timer: NodeJS.Timeout | null = null;
  return {
    begin: () => void (timer ??= setInterval(sweepAll, everyMs)),
    stop() {
      if (timer !== null) clearInterval(timer);
      timer = null;
    },
  };
}

function sweep(
  groups: Iterable<Group>,
  { accessEveryMs }: ConnectionLimits,
  hooks: ConnectionHooks,
): void {
  const nowMs = performance.now();
  for (const group of groups) {
    for (const connection of group.connections) {
      const seen = connection.look(nowMs);
      if (seen === 'still' || nowMs - group.accessedAtMs < accessEveryMs) continue;
      group.accessedAtMs = nowMs;
      hooks.accessed(connection);
    }
  }
}

/** Ids contain no slash. */
function keyOf(organizationId: string, sessionId: string): string {
  return `${organizationId}/${sessionId}`;
}

function tooMany(of: 'gateway' | 'organization' | 'session', limit: number): Rejection {
  return reject(
    'RATE_LIMIT_EXCEEDED',
    { of, limit },
    { message: `Too many connections to this ${of}.`, retryAfterSeconds: 5 },
  );
}
