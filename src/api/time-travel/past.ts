import { organizationSessions } from '#projections/organization-sessions.ts';
import type { Projection } from '#projections/projection.ts';
import { servers } from '#projections/servers.ts';
import type { Page, PageQuery } from '#projections/store/views.ts';
import { workloads } from '#projections/workloads.ts';
import { filters, sessionsOf } from '#events/subjects.ts';
import type { SessionState } from '#events/session.ts';
import { Unavailable } from '#src/errors.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { loadAt, sequenceAt } from '../../log/past.ts';
import { foldUpTo, nothing, type Fold } from './past-fold.ts';
import { queuePlaceAt } from './past-queue.ts';
import { isWaiting, type QueuePlace } from '../sessions/queue-place.ts';

/**
 * What this process tells of the past, from the log alone: the folds that the projector runs, run
 * up to a moment. `at` is in ms since the epoch and not in the future. Every method throws
 * Unavailable where the log does not answer or more is asked than can be folded now.
 */
export type Past = {
  session(organizationId: string, id: string, at: number): Promise<PastSession | null>;
  /** A page as the read model gives one; `checkpoint` is the sequence that the moment is. */
  sessions(organizationId: string, query: PageQuery, at: number): Promise<Page>;
  /** How many views stood in each of the lists: the fleet's browsers, its servers, the sessions. */
  counts(organizationId: string, lists: Lists, at: number): Promise<Record<keyof Lists, number[]>>;
};
export type PastSession = { state: SessionState; place: QueuePlace | null };
export type Lists = Record<'workloads' | 'servers' | 'sessions', readonly string[]>;

/** Requests that may wait for a fold of another one; each takes 8 s at most. */
const WAITING_MAX = 20;
/** Folds that are kept, the last used first: whoever turns pages asks for the same again. */
const KEPT_MAX = 12;
const KEPT_VIEWS_MAX = 300_000;

export function openPast(parts: { desk: Desk; queueTimeoutMs: number }): Past {
  let kept: { of: string; fold: Fold }[] = [];
  let line: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  function keep(of: string, fold: Fold): void {
    const others = kept.filter((one) => one.of !== of || one.fold.upTo !== fold.upTo);
    let views = 0;
    kept = [{ of, fold }, ...others].slice(0, KEPT_MAX).filter((one, place) => {
      views += one.fold.views.size;
      return place === 0 || views <= KEPT_VIEWS_MAX;
    });
  }

  /** One fold at a time: a past that is asked of must not slow down the present. */
  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (waiting >= WAITING_MAX) throw new Unavailable('event-log', new Error('too many folds'));
    waiting += 1;
    const turn = line.then(work);
    line = turn.catch(() => undefined);
    return turn.finally(() => (waiting -= 1));
  }

  async function fold<View>(
    projection: Projection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold> {
    const of = subjects.join(' ');
    const nearest = kept
      .filter((one) => one.of === of && one.fold.upTo <= upTo)
      .reduce((best, one) => (one.fold.upTo > best.upTo ? one.fold : best), nothing);
    const folded = await foldUpTo(parts.desk.log, projection, subjects, { from: nearest, upTo });
    keep(of, folded);
    if (folded.isWhole) return folded;
    throw new Unavailable('event-log', new Error(`folded up to ${folded.upTo} of ${upTo} so far`));
  }
  const foldSessions = (organizationId: string, upTo: number) =>
    fold(organizationSessions, [sessionsOf(organizationId)], upTo);

  return {
    async session(organizationId, id, at) {
      const { desk } = parts;
      const sequence = await sequenceAt(desk, at);
      const session = { kind: 'session', organizationId, id } as const;
      const { state } = await loadAt<'session'>(desk.log, session, sequence);
      if (state === null) return null;
      const moment = { at, upTo: sequence, queueTimeoutMs: parts.queueTimeoutMs };
      const place = isWaiting(state) ? await inTurn(() => queuePlaceAt(desk, state, moment)) : null;
      return { state, place };
    },
    async sessions(organizationId, query, at) {
      const upTo = await sequenceAt(parts.desk, at);
      return pageOf(await inTurn(() => foldSessions(organizationId, upTo)), query);
    },
    async counts(organizationId, lists, at) {
      const upTo = await sequenceAt(parts.desk, at);
      return inTurn(async () => ({
        workloads: countsOf(await fold(workloads, filters.workloads, upTo), lists.workloads),
        servers: countsOf(await fold(servers, filters.servers, upTo), lists.servers),
        sessions: countsOf(await foldSessions(organizationId, upTo), lists.sessions),
      }));
    },
  };
}

/** As the store does it: those that stand in all of the lists, highest order first. */
function pageOf({ upTo, views }: Fold, { lists, offset, limit }: PageQuery): Page {
  const members = [...views]
    .filter(([, { names }]) => lists.every((list) => names.has(list)))
    .toSorted(([a, one], [b, other]) => other.order - one.order || (a < b ? 1 : -1));
  const texts = members.slice(offset, offset + limit).map(([, { text }]) => text);
  return { items: texts.join(','), total: members.length, checkpoint: upTo };
}

function countsOf({ views }: Fold, lists: readonly string[]): number[] {
  const counts = new Map(lists.map((list) => [list, 0]));
  for (const { names } of views.values())
    for (const name of names) {
      const count = counts.get(name);
      if (count !== undefined) counts.set(name, count + 1);
    }
  return lists.map((list) => counts.get(list) ?? 0);
}
