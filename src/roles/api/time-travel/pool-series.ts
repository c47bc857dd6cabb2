import { isOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { WorkloadState } from '#events/workload.ts';
import { sessionKey } from '#projections/session-view.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createStateReader } from '#src/kernel/event-store/load-state.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { createWaitingLine } from './waiting-line.ts';
import type { Fold } from './past-fold.ts';

/** The pool at a moment (ms since the epoch): browsers by state, and sessions without one. */
export type PoolPoint = Record<'at' | 'total' | PoolStatus | 'waiting', number>;
type PoolStatus = Exclude<WorkloadState['status'], 'terminated'>;

export type SeriesRange = { from: number; to: number; stepMs: number };

/** Read and decoded at some 100,000 a second. A request for more is refused. */
const EVENTS_MAX = 300_000;
const READ_AT_ONCE = 200;

/**
 * The points from `from` to `to`, one a step, folded from the events of that time.
 * @param browsers the browsers as of the sequence `fold.upTo`, where the time begins
 * @param waitingAfter the sequence after which the sessions that waited at `from` were requested
 * @param organizationId whose sessions count as waiting; null: all
 * @throws Unavailable if the event store does not answer, or has too many events of that time
 */
export async function foldSeries(
  eventStore: EventStore,
  { from, to, stepMs }: SeriesRange,
  browsers: Fold,
  {
    waitingAfter,
    upTo,
    organizationId,
  }: {
    waitingAfter: number;
    upTo: number;
    organizationId: string | null;
  },
): Promise<PoolPoint[]> {
  const pool = countBrowsers(browsers);
  const line = createWaitingLine();
  const isAsked = (key: string) =>
    organizationId === null || key.startsWith(sessionKey(organizationId, ''));
  const points: PoolPoint[] = [];
  const pointsUntil = (time: number) => {
    for (let at = from + points.length * stepMs; at < time && at <= to; at += stepMs)
      points.push({ at, ...pool.counts(), waiting: line.count(isAsked) });
  };
  const states = createStateReader(eventStore);
  let read = 0;
  const range = {
    subjects: [...filters.workloads, ...filters.waiting],
    after: Math.min(waitingAfter, browsers.upTo),
    upTo,
    includesArchive: true,
    batchMax: READ_AT_ONCE,
    onUnreadable: refuseUnknown,
  };
  for await (const batch of eventStore.read(range)) {
    for (const one of batch) {
      if (isOf('workload', one) && one.sequence <= browsers.upTo) continue;
      const time = Date.parse(one.time);
      pointsUntil(time);
      if (isOf('workload', one)) {
        const { state } = await states.complete(one);
        pool.place(one.aggregate.id, state.status);
      } else line.take(one);
    }
    read += batch.length;
    if (read > EVENTS_MAX)
      throw new Unavailable('event-log', new Error(`more than ${EVENTS_MAX} events to fold`));
    await new Promise(setImmediate);
  }
  pointsUntil(Infinity);
  return points;
}

/** The number of browsers in each state. */
function countBrowsers({ views }: Fold) {
  const statuses = new Map<string, PoolStatus>();
  const counts = { total: 0, idle: 0, busy: 0, provisioning: 0, launching: 0, terminating: 0 };

  function place(id: string, status: WorkloadState['status']): void {
    const before = statuses.get(id);
    if (before === undefined) counts.total += 1;
    else counts[before] -= 1;
    if (status === 'terminated') {
      statuses.delete(id);
      counts.total -= 1;
      return;
    }
    statuses.set(id, status);
    counts[status] += 1;
  }
  for (const [id, { text }] of views) place(id, (JSON.parse(text) as WorkloadState).status);
  return { place, counts: () => ({ ...counts }) };
}
