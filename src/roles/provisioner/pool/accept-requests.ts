import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import type { EventWithState, RecordedEvent, RecordedOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { nextTurn, sleep } from '#src/kernel/async/sleep.ts';
import { isRejection, Unavailable } from '#src/kernel/errors.ts';
import { requestsWanted } from '#src/kernel/domain/fleet/pool-policy.ts';
import type { Delivery, WorkQueue } from '#src/kernel/messaging/work-queue.ts';
import { loadState, withState } from '#src/kernel/event-store/load-state.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { metadataFrom } from '#src/commands/metadata.ts';
import { isAwaitingServer, type SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { assignBrowser, resizeToOptions } from './assign-browser.ts';
import { canServe, DEFAULTS, isSame, launchOptionsOf } from './options.ts';
import { poolFacts, until, type Pool, type WaitingRequest } from './pool.ts';
import type { WaitingSessions } from './waiting-sessions.ts';

const ACTOR = 'provisioner';
/** The longest that one pull waits for a request; then the next pull begins. */
const PULL_MS = 30_000;
/** Pause while the work queue is unavailable. */
const UNAVAILABLE_MS = 250;
/** A request older than this may have been withdrawn: its session is read before it is accepted. */
const FRESH_MS = 500;
/** A request that could not be accepted is delivered again after this, here or elsewhere. */
const RETRY_MS = 500;
/**
 * A request that this server has requeued is left to the other servers for `YIELD_MS` whenever it
 * is delivered here; the queue serves the pulls in turns. It is accepted here once more when this
 * process has known of the requeue for `LEFT_MS`.
 */
const YIELD_MS = 1_000;
const LEFT_MS = 8_000;
/** Claims that may be lost to other servers before the pulled request is accepted. */
const CLAIMS_MAX = 3;
/** Failures after which a request becomes a dead letter; an outage is none. */
const FAILURES_MAX = 10;
/** Requests whose failures are counted; beyond that the count of the oldest one begins again. */
const FAILED_MAX = 1_000;

type AcceptDependencies = {
  workQueue: WorkQueue<RecordedEvent>;
  pool: Pool;
  waitingSessions: WaitingSessions;
  context: CommandContext;
  /** Failures to accept a request, by session. */
  failures: Map<string, number>;
  signal: AbortSignal;
};

/**
 * Pulls requests from the work queue, only as many as this server can serve: the others stay in the
 * queue. Until the signal aborts; then resolves when the accepted requests have been handled.
 */
export async function acceptRequests(given: Omit<AcceptDependencies, 'failures'>): Promise<void> {
  const dependencies = { ...given, failures: new BoundedMap<string, number>(FAILED_MAX) };
  const { workQueue, pool, signal } = dependencies;
  const underWay = new Set<Promise<void>>();
  while (!signal.aborted) {
    await until(pool, () => canAccept(pool), signal);
    const delivery = await nextRequest(workQueue, signal);
    if (delivery === null) continue;
    const event = await readRequest(dependencies, delivery);
    if (event === null) continue;
    const isForOthers = await isForOthersFirst(dependencies, event, delivery);
    // Meanwhile this server may have been drained, or its room used up.
    if (signal.aborted || !canAccept(pool)) {
      delivery.retryAfter(0);
      continue;
    }
    if (isForOthers) {
      delivery.retryAfter(YIELD_MS);
      continue;
    }
    // Not awaited: it reserves its place in the pool synchronously.
    const accepting = acceptDelivery(dependencies, delivery, event).finally(() =>
      underWay.delete(accepting),
    );
    underWay.add(accepting);
    // Its event is sent before the next pull.
    await nextTurn();
  }
  await Promise.all(underWay);
}

function canAccept(pool: Pool): boolean {
  return pool.isOpen && requestsWanted(poolFacts(pool)) > pool.lookups;
}

/**
 * Whether this server has failed to launch for the request, so that others try it first. The time
 * since the requeue bounds that, for all such requests at once. The deliveries do not: they include
 * each time that a server gave the item back because other requests came first. A session that is
 * not known to wait is read instead, and an operator's retry is not given back. Nothing is given
 * back once no live server is left that has not tried; while that cannot be read, there may be one.
 */
async function isForOthersFirst(
  { pool, waitingSessions }: AcceptDependencies,
  event: EventWithState<'session'>,
  { isRetry }: Delivery<RecordedEvent>,
): Promise<boolean> {
  const newest = waitingSessions.newestOf(event);
  if (newest === null || isRetry === true || newest.knownMs >= LEFT_MS) return false;
  const tried = newest.request.state.triedServers ?? [];
  return tried.includes(pool.server.id) && (await pool.hasOthers(tried)) !== false;
}

async function nextRequest(workQueue: WorkQueue<RecordedEvent>, signal: AbortSignal) {
  try {
    return await workQueue.next(PULL_MS, signal);
  } catch {
    await sleep(UNAVAILABLE_MS, signal);
    return null;
  }
}

/** The request with its session's state; null if that is unreadable: the request is retried. */
async function readRequest(
  dependencies: AcceptDependencies,
  delivery: Delivery<RecordedEvent>,
): Promise<EventWithState<'session'> | null> {
  const event = delivery.item as RecordedOf<'session'>;
  try {
    return await withState<'session'>(dependencies.context.eventStore, event);
  } catch (error) {
    retryOrGiveUp(dependencies, delivery, error);
    return null;
  }
}

async function acceptDelivery(
  dependencies: AcceptDependencies,
  delivery: Delivery<RecordedEvent>,
  event: EventWithState<'session'>,
): Promise<void> {
  const { pool, waitingSessions, context, failures } = dependencies;
  context.stateCache?.observe(event);
  try {
    const status = waitingSessions.statusOf(event);
    if (status === 'claimed') return delivery.retryAfter(RETRY_MS);
    // A give-back answers the operator who retries a dead letter that the retry has failed.
    const isOthersTurn =
      delivery.isRetry !== true && (await acceptOthersFirst(pool, waitingSessions, event));
    if (isOthersTurn) return delivery.retryAfter(0);
    const isFresh = status === 'waits' && pool.now() - Date.parse(event.time) < FRESH_MS;
    if (isFresh || (await isStillWaiting(pool, context, event)))
      await claim(pool, waitingSessions, event, false);
    failures.delete(event.aggregate.id);
    await delivery.ack();
  } catch (error) {
    retryOrGiveUp(dependencies, delivery, error);
  }
}

/**
 * The queue's own count of deliveries is no bound: it includes those that were given back because
 * others came first.
 */
function retryOrGiveUp(
  { pool, failures }: AcceptDependencies,
  delivery: Delivery<RecordedEvent>,
  error: unknown,
): void {
  const { id: sessionId } = (delivery.item as RecordedOf<'session'>).aggregate;
  const isOutage = error instanceof Unavailable || !pool.isOpen;
  const count = (failures.get(sessionId) ?? 0) + (isOutage ? 0 : 1);
  if (count >= FAILURES_MAX) {
    failures.delete(sessionId);
    pool.log.error({ err: error, sessionId, count }, 'failed to accept a request; it is given up');
    return delivery.deadLetter(String(error));
  }
  if (count > 0) failures.set(sessionId, count);
  pool.log.warn({ err: error, sessionId }, 'failed to accept a request; it is retried');
  delivery.retryAfter(RETRY_MS);
}

/**
 * If more sessions wait than this server has room for: accepts the request of the organization
 * whose turn it is instead of the one that was pulled. That one goes back to the work queue; the
 * item of the accepted one is acknowledged when it is pulled.
 * @returns whether another request was accepted
 */
async function acceptOthersFirst(
  pool: Pool,
  waitingSessions: WaitingSessions,
  event: EventWithState<'session'>,
): Promise<boolean> {
  for (let lost = 0; lost < CLAIMS_MAX; lost += 1) {
    if (waitingSessions.count() <= requestsWanted(poolFacts(pool)) - pool.lookups) return false;
    const other = waitingSessions.turnBefore(event, pool.server.id);
    if (other === null) return false;
    if (await claim(pool, waitingSessions, other, true)) return true;
  }
  return false;
}

/** @returns whether the session is this server's now */
async function claim(
  pool: Pool,
  waitingSessions: WaitingSessions,
  event: EventWithState<'session'>,
  isContested: boolean,
): Promise<boolean> {
  const { organizationId, id } = event.aggregate;
  let isAccepted = false;
  waitingSessions.claim(event);
  try {
    isAccepted = await acceptTraced(pool, { organizationId, id }, event, isContested);
    if (isAccepted) noteArrival(pool);
    return isAccepted;
  } finally {
    if (!isAccepted) waitingSessions.lose(event);
  }
}

/** Counts the request; the autoscaler learns of it before the pool refills. */
function noteArrival(pool: Pool): void {
  pool.arrivals.note();
  pool.changed();
}

/** Accepts a request within a span, so that what follows from it is traced below that span. */
async function acceptTraced(
  pool: Pool,
  identity: SessionIdentity,
  event: EventWithState<'session'>,
  isContested: boolean,
): Promise<boolean> {
  const parent = event.metadata.traceparent;
  const span = pool.tracer?.begin('take request', {
    kind: 'consumer',
    parent,
    attributes: { 'bss.session_id': identity.id, 'bss.server_id': pool.server.id },
  });
  if (span === undefined) return acceptRequest(pool, identity, event, isContested);
  const traced = { ...event, metadata: { ...event.metadata, traceparent: span.traceparent } };
  try {
    return await acceptRequest(pool, identity, traced, isContested);
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/**
 * Assigns an idle browser to the request, resized to its viewport, or else makes the request wait
 * for a launch. Resolves when `session.activated` or `session.assigned` has been appended: from
 * then on this server is responsible for the request, and the work queue may forget it.
 * @param isContested whether another server may hold the session's item and accept it meanwhile
 * @returns false if the session is another server's, or has ended
 * @throws Error where the server is leaving; any server may accept the request then
 */
export async function acceptRequest(
  pool: Pool,
  identity: SessionIdentity,
  event: EventWithState<'session'>,
  isContested = false,
): Promise<boolean> {
  const options = launchOptionsOf(event.state);
  const isFirst = !pool.waiting.some((one) => isSame(one.options, options));
  const idle = isFirst && canServe(DEFAULTS, options) ? pool.roster.longestIdle() : null;
  if (idle !== null) {
    const isIdleSize = isSame(idle.options, options);
    const isReady = isIdleSize || (await resizeToOptions(pool, idle, identity, event));
    if (isReady)
      return assignBrowser(pool, idle, identity, event, {
        wasIdle: true,
        isContested: isContested && isIdleSize,
      });
    if (!pool.isOpen) throw new Error('this server is shutting down');
  }
  return waitForLaunch(pool, identity, event);
}

/** Appends `session.assigned`; the request waits for a browser meanwhile. */
async function waitForLaunch(
  pool: Pool,
  identity: SessionIdentity,
  event: EventWithState<'session'>,
): Promise<boolean> {
  const options = launchOptionsOf(event.state);
  const assigned = Promise.withResolvers<SessionState | null>();
  const request = { identity, event, options, failures: 0, assigned: assigned.promise };
  pool.waiting.push(request);
  pool.changed();
  const launching = pool.roster.all().findLast(({ phase }) => phase === 'launching');
  const workloadId = launching?.workloadId ?? 'none-yet';
  const command = { type: 'AssignSession', workloadId, serverId: pool.server.id } as const;
  const reported = pool.reporter.session(identity, command, metadataFrom(event, ACTOR));
  assigned.resolve(reported.then(stateOf, () => null));
  let isOwn = false;
  try {
    isOwn = isOfServer(pool.server.id, await reported);
    return isOwn;
  } finally {
    if (!isOwn) withdraw(pool, request);
  }
}

type Handled = Awaited<ReturnType<Pool['reporter']['session']>>;

function stateOf(handled: Handled): SessionState | null {
  return isRejection(handled) ? null : handled.state;
}

function isOfServer(serverId: string, handled: Handled): boolean {
  if (isRejection(handled)) return false;
  const { assignment, workload } = handled.state;
  return (workload ?? assignment)?.serverId === serverId;
}

function withdraw(pool: Pool, request: WaitingRequest): void {
  const at = pool.waiting.indexOf(request);
  if (at === -1) return;
  pool.waiting.splice(at, 1);
  pool.changed();
}

/**
 * Whether the session still waits for a browser and no server has it. While its state is read the
 * pool keeps a place for it.
 */
async function isStillWaiting(
  pool: Pool,
  context: CommandContext,
  { aggregate }: RecordedOf<'session'>,
): Promise<boolean> {
  let isWaiting = false;
  pool.lookups += 1;
  try {
    // A replica may lack the session, or have its state from before it was requeued.
    const { state } = await loadState<'session'>(context.eventStore, aggregate, {
      fromLeader: true,
    });
    isWaiting = state !== null && isAwaitingServer(state);
  } finally {
    pool.lookups -= 1;
    if (!isWaiting) pool.changed();
  }
  return isWaiting;
}
