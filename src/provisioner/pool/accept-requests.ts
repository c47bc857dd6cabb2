import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedEvent, RecordedOf } from '#events/events.ts';
import { requestsWanted } from '#src/domain/fleet/pool-policy.ts';
import type { Delivery, Inbox } from '#src/messaging/work-queue.ts';
import { load } from '#src/event-store/load-state.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import type { SessionIdentity } from '#src/domain/session/session.ts';
import { factsOf, until, type Pool } from './pool.ts';
import { takeOn } from './assign-browser.ts';

/** One pull waits this long for a request; then the next one begins. */
const PULL_MS = 30_000;
/** Pause while the queue does not answer. */
const AWAY_MS = 250;
/** A request older than this may have been withdrawn: it is looked up before it gets a browser. */
const FRESH_MS = 500;
/** A request that could not be taken comes again after this, here or on another server. */
const RETRY_MS = 500;
/**
 * A request that this server has given back is left to the others for so long and so often, while
 * it pulls nothing itself; if none has had room by then, it is tried here once more.
 */
const LEAVE_MS = 1_000;
const LEAVES_MAX = 8;
/** They are to be there first when it comes again. */
const LET_OTHERS_MS = 250;

/**
 * Takes requests from the queue, only for as many as this server can serve: what nobody pulls is
 * the queue. Until the signal aborts; then resolves when those under way are done.
 */
export async function takeRequests(parts: {
  inbox: Inbox<RecordedEvent>;
  pool: Pool;
  desk: Desk;
  signal: AbortSignal;
}): Promise<void> {
  const { inbox, pool, signal } = parts;
  const underWay = new Set<Promise<void>>();
  while (!signal.aborted) {
    await until(pool, () => canTake(pool), signal);
    const delivery = await nextRequest(inbox, signal);
    if (delivery === null) continue;
    // While the pull was open this server may have been drained, or its room used up.
    if (signal.aborted || !canTake(pool)) {
      delivery.retryAfter(0);
      continue;
    }
    if (isLeft(pool, delivery)) {
      delivery.retryAfter(LEAVE_MS);
      await pause(LEAVE_MS + LET_OTHERS_MS, undefined, { signal }).catch(() => undefined);
      continue;
    }
    // Not awaited: what it takes from the pool is taken at once, so the next one can be pulled.
    const taking = takeDelivery(parts, delivery).finally(() => underWay.delete(taking));
    underWay.add(taking);
  }
  await Promise.all(underWay);
}

function canTake(pool: Pool): boolean {
  return pool.isOpen && requestsWanted(factsOf(pool)) > pool.taking;
}

/** One that this server could launch nothing for is for the others first. */
function isLeft({ server }: Pool, { item, deliveries }: Delivery<RecordedEvent>): boolean {
  const { triedServers } = (item as RecordedOf<'session'>).state;
  return triedServers?.includes(server.id) === true && deliveries <= LEAVES_MAX;
}

async function nextRequest(inbox: Inbox<RecordedEvent>, signal: AbortSignal) {
  try {
    return await inbox.next(PULL_MS, signal);
  } catch {
    await pause(AWAY_MS, undefined, { signal }).catch(() => undefined);
    return null;
  }
}

async function takeDelivery(
  { pool, desk }: { pool: Pool; desk: Desk },
  delivery: Delivery<RecordedEvent>,
): Promise<void> {
  const event = delivery.item as RecordedOf<'session'>;
  const { organizationId, id } = event.aggregate;
  desk.recent?.saw(event);
  try {
    if (isFresh(event, pool.now()) || (await stillWaits(pool, desk, event))) {
      pool.arrivals.note();
      await takeTraced(pool, { organizationId, id }, event);
    }
    await delivery.ack();
  } catch (error) {
    pool.log.warn({ err: error, sessionId: id }, 'a request was not taken; it comes again');
    delivery.retryAfter(RETRY_MS);
  }
}

/** What follows from the request is a part of its being taken. */
async function takeTraced(
  pool: Pool,
  identity: SessionIdentity,
  event: RecordedOf<'session'>,
): Promise<void> {
  const parent = event.cause.traceparent;
  const span = pool.tracer?.begin('take request', {
    kind: 'consumer',
    parent,
    attributes: { 'bss.session_id': identity.id, 'bss.server_id': pool.server.id },
  });
  if (span === undefined) return takeOn(pool, identity, event);
  try {
    await takeOn(pool, identity, {
      ...event,
      cause: { ...event.cause, traceparent: span.traceparent },
    });
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

function isFresh(event: RecordedOf<'session'>, now: number): boolean {
  return now - Date.parse(event.time) < FRESH_MS;
}

/**
 * True where the session still waits for a browser and no server has it. While that is being looked
 * up no other request is pulled for its place.
 */
async function stillWaits(
  pool: Pool,
  desk: Desk,
  { aggregate }: RecordedOf<'session'>,
): Promise<boolean> {
  let isWaiting = false;
  pool.taking += 1;
  try {
    const { state } = await load<'session'>(desk.log, aggregate);
    const isOpen = state?.status === 'creating' || state?.status === 'queued';
    isWaiting = isOpen && state.assignment === null;
  } finally {
    pool.taking -= 1;
    if (!isWaiting) pool.changed();
  }
  return isWaiting;
}
