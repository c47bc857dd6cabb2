import type { EventWithState, RecordedEvent, RecordedOf } from '#events/events.ts';
import { sleep } from '#src/async/sleep.ts';
import { requestsWanted } from '#src/domain/fleet/pool-policy.ts';
import type { Delivery, WorkQueue } from '#src/messaging/work-queue.ts';
import { loadState, withState } from '#src/event-store/load-state.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { metadataFrom } from '#src/commands/metadata.ts';
import { isAwaitingServer, type SessionIdentity } from '#src/domain/session/session.ts';
import { assignBrowser, resizeToOptions } from './assign-browser.ts';
import { canServe, DEFAULTS, isSame } from './options.ts';
import { poolFacts, until, type Pool } from './pool.ts';

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
 * A request that this server has requeued is left to the other servers for `YIELD_MS`, and this
 * server pulls nothing meanwhile. After `YIELDS_MAX` deliveries it is accepted here once more.
 */
const YIELD_MS = 1_000;
const YIELDS_MAX = 8;
/** The others' pulls are to be there before this server's when the request is redelivered. */
const YIELD_MARGIN_MS = 250;

/**
 * Pulls requests from the work queue, only as many as this server can serve: the others stay in the
 * queue. Until the signal aborts; then resolves when the accepted requests have been handled.
 */
export async function acceptRequests(dependencies: {
  workQueue: WorkQueue<RecordedEvent>;
  pool: Pool;
  context: CommandContext;
  signal: AbortSignal;
}): Promise<void> {
  const { workQueue, pool, signal } = dependencies;
  const underWay = new Set<Promise<void>>();
  while (!signal.aborted) {
    await until(pool, () => canAccept(pool), signal);
    const delivery = await nextRequest(workQueue, signal);
    if (delivery === null) continue;
    const event = await readRequest(dependencies, delivery);
    if (event === null) continue;
    // During the pull this server may have been drained, or its room used up.
    if (signal.aborted || !canAccept(pool)) {
      delivery.retryAfter(0);
      continue;
    }
    if (isForOthersFirst(pool, event, delivery)) {
      delivery.retryAfter(YIELD_MS);
      await sleep(YIELD_MS + YIELD_MARGIN_MS, signal);
      continue;
    }
    // Not awaited: it reserves its place in the pool synchronously, so the next pull can begin.
    const accepting = acceptDelivery(dependencies, delivery, event).finally(() =>
      underWay.delete(accepting),
    );
    underWay.add(accepting);
  }
  await Promise.all(underWay);
}

function canAccept(pool: Pool): boolean {
  return pool.isOpen && requestsWanted(poolFacts(pool)) > pool.lookups;
}

/** Whether this server has failed to launch for the request, so that others try it first. */
function isForOthersFirst(
  { server }: Pool,
  { state: { triedServers } }: EventWithState<'session'>,
  { deliveries }: Delivery<RecordedEvent>,
): boolean {
  return triedServers?.includes(server.id) === true && deliveries <= YIELDS_MAX;
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
  { pool, context }: { pool: Pool; context: CommandContext },
  delivery: Delivery<RecordedEvent>,
): Promise<EventWithState<'session'> | null> {
  const event = delivery.item as RecordedOf<'session'>;
  try {
    return await withState<'session'>(context.eventStore, event);
  } catch (error) {
    const sessionId = event.aggregate.id;
    pool.log.warn({ err: error, sessionId }, 'failed to read a request; it is retried');
    delivery.retryAfter(RETRY_MS);
    return null;
  }
}

async function acceptDelivery(
  { pool, context }: { pool: Pool; context: CommandContext },
  delivery: Delivery<RecordedEvent>,
  event: EventWithState<'session'>,
): Promise<void> {
  const { organizationId, id } = event.aggregate;
  context.stateCache?.observe(event);
  try {
    if (isFresh(event, pool.now()) || (await isStillWaiting(pool, context, event))) {
      pool.arrivals.note();
      await acceptTraced(pool, { organizationId, id }, event);
    }
    await delivery.ack();
  } catch (error) {
    pool.log.warn({ err: error, sessionId: id }, 'failed to accept a request; it is retried');
    delivery.retryAfter(RETRY_MS);
  }
}

/** Accepts a request within a span, so that what follows from it is traced below that span. */
async function acceptTraced(
  pool: Pool,
  identity: SessionIdentity,
  event: EventWithState<'session'>,
): Promise<void> {
  const parent = event.metadata.traceparent;
  const span = pool.tracer?.begin('take request', {
    kind: 'consumer',
    parent,
    attributes: { 'bss.session_id': identity.id, 'bss.server_id': pool.server.id },
  });
  if (span === undefined) return acceptRequest(pool, identity, event);
  try {
    await acceptRequest(pool, identity, {
      ...event,
      metadata: { ...event.metadata, traceparent: span.traceparent },
    });
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
 * @throws Error where the server is leaving; any server may accept the request then
 */
export async function acceptRequest(
  pool: Pool,
  identity: SessionIdentity,
  event: EventWithState<'session'>,
): Promise<void> {
  const { browser: options } = event.state;
  const isFirst = !pool.waiting.some((one) => isSame(one.options, options));
  const idle = isFirst && canServe(DEFAULTS, options) ? pool.roster.longestIdle() : null;
  if (idle !== null) {
    const isReady =
      isSame(idle.options, options) || (await resizeToOptions(pool, idle, identity, event));
    if (isReady) return assignBrowser(pool, idle, identity, event);
    if (!pool.isOpen) throw new Error('this server is shutting down');
  }
  const assigned = Promise.withResolvers<unknown>();
  pool.waiting.push({ identity, event, options, failures: 0, assigned: assigned.promise });
  pool.changed();
  const launching = pool.roster.all().findLast(({ phase }) => phase === 'launching');
  const workloadId = launching?.workloadId ?? 'none-yet';
  const command = { type: 'AssignSession', workloadId, serverId: pool.server.id } as const;
  const reported = pool.reporter.session(identity, command, metadataFrom(event, ACTOR));
  assigned.resolve(reported.catch(() => undefined));
  await reported;
}

function isFresh(event: RecordedOf<'session'>, now: number): boolean {
  return now - Date.parse(event.time) < FRESH_MS;
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
