import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { PoolInputs } from '#events/pool.ts';
import { figuresOf, type PoolFigures } from '#src/kernel/domain/fleet/pool-figures.ts';
import type { SimulatedRequest } from '#src/kernel/domain/fleet/simulate-pool.ts';

/** What was asked of one server's pool in a time, and how it did. */
export type RecordedUse = {
  /** In the order of their times, each with the time for which it had its browser. */
  requests: readonly SimulatedRequest[];
  figures: PoolFigures;
  /** Median of its last launches, milliseconds; null: none was recorded. */
  launchMs: number | null;
  /** Inputs of its last decision; null: none was recorded. */
  lastInputs: PoolInputs | null;
};

/** A session; milliseconds since the epoch. */
type Life = {
  requestedAt: number;
  /** No idle browser was there: the request was queued, or assigned to a launch. */
  hasWaited: boolean;
  startedAt: number | null;
  endedAt: number | null;
  /** null: it has got no browser. */
  serverId: string | null;
};

type Use = {
  from: number;
  to: number;
  lives: Map<string, Life>;
  /** By workload: since when it has been idle. */
  idleSince: Map<string, { serverId: string; since: number }>;
  /** By server: browser-milliseconds. */
  idleMs: Map<string, number>;
  /** By server: durations of its last launches. */
  launches: Map<string, number[]>;
  lastInputs: Map<string, PoolInputs>;
};

/** Launches whose median is the duration of the simulated ones. */
const LAUNCHES_MAX = 1_000;

/**
 * Folds the events of a time, oldest first.
 * @param from and `to`: the time, milliseconds since the epoch
 */
export function readPoolUse(from: number, to: number) {
  const use: Use = {
    from,
    to,
    lives: new Map(),
    idleSince: new Map(),
    idleMs: new Map(),
    launches: new Map(),
    lastInputs: new Map(),
  };
  const { lives, lastInputs } = use;
  return {
    take(event: RecordedEvent): void {
      if (isOf('session', event)) takeSession(use, event);
      else if (isOf('workload', event)) takeWorkload(use, event);
      else if (event.type === 'server.pool-resized')
        lastInputs.set(event.aggregate.id, event.data.inputs);
    },
    /** Number of requests so far. */
    count: () => lives.size,
    /** Number of requests that got no browser in this time. */
    unserved: () => [...lives.values()].filter(({ serverId }) => serverId === null).length,
    /** The servers that served requests, in alphabetical order. */
    servers: () =>
      [...new Set([...lives.values()].flatMap(({ serverId }) => serverId ?? []))].toSorted(),
    of: (serverId: string) => useOf(use, serverId),
  };
}

function takeSession({ lives }: Use, event: RecordedOf<'session'>): void {
  const at = Date.parse(event.time);
  const { id } = event.aggregate;
  if (event.type === 'session.requested') {
    const begun = { requestedAt: at, hasWaited: false, startedAt: null, endedAt: null };
    lives.set(id, { ...begun, serverId: null });
    return;
  }
  const life = lives.get(id);
  if (life === undefined) return;
  if (event.type === 'session.queued' || event.type === 'session.assigned') life.hasWaited = true;
  else if (event.type === 'session.activated') {
    life.startedAt = at;
    life.serverId = event.data.workload.serverId;
  } else life.endedAt ??= at;
}

function takeWorkload(use: Use, event: RecordedOf<'workload'>): void {
  const at = Date.parse(event.time);
  const { id } = event.aggregate;
  const known = use.idleSince.get(id);
  const serverId = known?.serverId ?? event.state?.serverId;
  if (serverId === undefined) return;
  if (event.type === 'workload.idle') {
    use.idleSince.set(id, { serverId, since: at });
    const measured = use.launches.get(serverId) ?? [];
    use.launches.set(serverId, measured);
    measured.push(event.data.launchMs);
    if (measured.length > LAUNCHES_MAX) measured.shift();
    return;
  }
  // One that is assigned without having become idle in this time was idle when the time began.
  const since = known?.since ?? (event.type === 'workload.assigned' ? use.from : at);
  use.idleMs.set(serverId, (use.idleMs.get(serverId) ?? 0) + at - since);
  use.idleSince.delete(id);
}

function useOf(use: Use, serverId: string): RecordedUse {
  const { from, to } = use;
  const served = [...use.lives.values()].filter((life) => life.serverId === serverId);
  const stillIdle = [...use.idleSince.values()].filter((idle) => idle.serverId === serverId);
  const requests = served.map((life) => requestOf(life, to));
  const measured = (use.launches.get(serverId) ?? []).toSorted((one, other) => one - other);
  return {
    requests: requests.toSorted((one, other) => one.at - other.at),
    figures: figuresOf({
      waits: served.map(({ requestedAt, startedAt }) => (startedAt ?? to) - requestedAt),
      warm: served.filter(({ hasWaited }) => !hasWaited).length,
      idleMs: (use.idleMs.get(serverId) ?? 0) + sum(stillIdle.map(({ since }) => to - since)),
      busyMs: sum(requests.map(({ durationMs }) => durationMs)),
      spanMs: to - from,
    }),
    launchMs: measured[Math.floor(measured.length / 2)] ?? null,
    lastInputs: use.lastInputs.get(serverId) ?? null,
  };
}

/** A session that has not ended goes on until the end of the time. */
function requestOf({ requestedAt, startedAt, endedAt }: Life, to: number): SimulatedRequest {
  const durationMs = Math.max(0, (endedAt ?? to) - (startedAt ?? to));
  return { at: requestedAt, durationMs };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0);
}
