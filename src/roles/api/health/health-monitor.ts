import { createLagMeter, lagSecondsMax } from '#projections/runner/lag.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import type { StoreUse } from '#src/kernel/objects/object-store.ts';
import { everyTick, untilTickOf } from '#src/kernel/async/ticks.ts';
import { projectionId } from '#projections/projection.ts';
import { liveServers, servers } from '#projections/servers.ts';
import type { Views } from '#projections/store/views.ts';

export type HealthWord = 'healthy' | 'degraded' | 'unhealthy';

/** The state of the dependencies as this process knows it, without a request to any of them. */
export type HealthMonitor = {
  /**
   * Event store and read model. Unhealthy: the event store is unavailable or was replaced since the
   * start. Degraded: the read model is unavailable, its lists have been behind for more than 10 s,
   * or this process cannot follow the event store.
   */
  database(): HealthWord;
  /** unhealthy if no server is live; degraded if that is unknown. */
  autoscaler(): HealthWord;
  /** degraded while each API process limits requests on its own. */
  rateLimit(): HealthWord;
  /** degraded while the object store is nearly full: soon only profiles are stored. */
  objectStore(): HealthWord;
  overall(): HealthWord;
  /**
   * Names of the dependencies without which this process cannot serve; empty: ready. Servers for
   * browsers are never among them: without one the API refuses creates only.
   */
  missing(): string[];
} & Disposable;

/** Interval between counts of the servers; a server that is lost shows within 5 s. */
const COUNT_EVERY_MS = 2_000;
/** The interval until there is a server: at a start it comes within some milliseconds. */
const LOOK_EVERY_MS = 50;

/** How often the object store is asked for its use: it fills in minutes. */
const STORE_EVERY_MS = 10_000;
/** Beyond this share of the object store its health says so; at 0.9 it refuses most. */
const NEARLY_FULL = 0.85;

export type HealthOptions = {
  isEventStoreConnected: () => boolean;
  /** False if the event store was emptied or replaced under this process. */
  isSameEventStore: () => boolean;
  /** False while this process cannot follow the event store: it receives no events. */
  isReceivingEvents: () => boolean;
  views: Views;
  isRateLimitShared: () => boolean;
  /** Null: the object store has no greatest size. */
  readStoreUse: () => Promise<StoreUse | null>;
  /** Whether the read model has caught up with the event store since this process started. */
  hasCaughtUp: () => boolean;
  /** Sequence of the newest session event that this process has seen. */
  position: () => number;
  now: () => number;
};

export function startHealthMonitor(options: HealthOptions): HealthMonitor {
  const { isEventStoreConnected, isSameEventStore, isReceivingEvents } = options;
  const { views, isRateLimitShared, hasCaughtUp } = options;
  const { position, now, readStoreUse } = options;
  let live: number | null = null;
  const store = watchStore(readStoreUse);
  const lists = createLagMeter(now);

  async function count(): Promise<void> {
    lists.observeEnd(position());
    try {
      const [counts, checkpoint] = await Promise.all([
        views.counts(projectionId(servers), [liveServers]),
        views.checkpoint(projectionId(organizationSessions)),
      ]);
      live = counts[0] ?? 0;
      lists.observeCheckpoint(checkpoint);
    } catch {
      live = null;
    }
  }
  let timer: NodeJS.Timeout;
  let isStopped = false;
  async function keepCounting(): Promise<void> {
    await count();
    if (isStopped) return;
    const waitMs = (live ?? 0) > 0 ? untilTickOf(COUNT_EVERY_MS) : LOOK_EVERY_MS;
    timer = setTimeout(() => void keepCounting(), waitMs).unref();
  }
  void keepCounting();

  function database(): HealthWord {
    if (!isEventStoreConnected() || !isSameEventStore()) return 'unhealthy';
    const isLate = lists.lag().seconds > lagSecondsMax;
    const isWhole = isReceivingEvents() && views.isReachable() && hasCaughtUp() && !isLate;
    return isWhole ? 'healthy' : 'degraded';
  }
  function rateLimit(): HealthWord {
    return isRateLimitShared() ? 'healthy' : 'degraded';
  }
  function autoscaler(): HealthWord {
    if (live === null || !views.isReachable()) return 'degraded';
    return live > 0 ? 'healthy' : 'unhealthy';
  }
  return {
    database,
    autoscaler,
    rateLimit,
    objectStore: store.word,
    overall() {
      const words = [database(), autoscaler(), rateLimit(), store.word()];
      if (words.includes('unhealthy')) return 'unhealthy';
      return words.includes('degraded') ? 'degraded' : 'healthy';
    },
    missing() {
      const missing = [];
      if (!isEventStoreConnected()) missing.push('event log');
      else if (!isSameEventStore())
        missing.push('restart, as the event log was emptied or replaced');
      else if (!isReceivingEvents())
        missing.push('event log, from which this process receives no events');
      if (!views.isReachable()) missing.push('read model');
      else if (!hasCaughtUp()) missing.push('read model, which is being folded');
      return missing;
    },
    [Symbol.dispose]() {
      isStopped = true;
      clearTimeout(timer);
      store[Symbol.dispose]();
    },
  };
}

/** Whether the object store is nearly full, as of the last look. */
function watchStore(readStoreUse: HealthOptions['readStoreUse']) {
  let isNearlyFull = false;
  async function look(): Promise<void> {
    try {
      const use = await readStoreUse();
      isNearlyFull = use !== null && use.bytes > use.maxBytes * NEARLY_FULL;
    } catch {
      // NATS has the objects, too: where it is away, the database is unhealthy.
    }
  }
  void look();
  const looking = everyTick(STORE_EVERY_MS, () => void look());
  return {
    word: (): HealthWord => (isNearlyFull ? 'degraded' : 'healthy'),
    [Symbol.dispose]: () => looking[Symbol.dispose](),
  };
}
