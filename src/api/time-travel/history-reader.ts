import { organizationSessions } from '#projections/organization-sessions.ts';
import type { StateProjection } from '#projections/projection.ts';
import { servers } from '#projections/servers.ts';
import type { Page, PageQuery } from '#projections/store/views.ts';
import { workloads } from '#projections/workloads.ts';
import { filters, sessionsOf } from '#events/subjects.ts';
import type { SessionState } from '#events/session.ts';
import { Unavailable } from '#src/errors.ts';
import { createFairQueue } from '#src/async/fair-queue.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { loadState, sequenceAt } from '#src/event-store/load-state.ts';
import { foldUpTo, nothing, type Fold } from './past-fold.ts';
import { queuePlaceAt } from './past-queue.ts';
import { isAwaitingServer } from '#src/domain/session/session.ts';
import { type QueuePlace } from '../sessions/queue-place.ts';

/**
 * Answers queries for the past from the event store alone: it runs the projector's folds up to a
 * moment. `at` is in ms since the epoch and not in the future. Every method throws Unavailable if
 * the event store does not answer or the query needs more folding than is possible now.
 */
export type HistoryReader = {
  session(organizationId: string, id: string, at: number): Promise<PastSession | null>;
  /** A page in the read model's form; `checkpoint` is the sequence of the moment. */
  sessions(organizationId: string, query: PageQuery, at: number): Promise<Page>;
  /** The number of views in each of the lists: the fleet's browsers, its servers, the sessions. */
  counts(organizationId: string, lists: Lists, at: number): Promise<Record<keyof Lists, number[]>>;
};
export type PastSession = { state: SessionState; place: QueuePlace | null };
export type Lists = Record<'workloads' | 'servers' | 'sessions', readonly string[]>;

/** Requests that fold or wait for their turn, of all organizations and of one. */
const PLACES = { places: 64, placesPerOwner: 8 };
/** A request folds for so long; then another organization has its turn. */
const TURN_MS = 500;
/** A request's turns together; with waiting for them, `ANSWER_MS`. Beyond, the answer is 503. */
const FOLD_MS = 8_000;
const ANSWER_MS = 30_000;
/**
 * Folds that are kept, the last used first: a client that turns pages requests the same fold again.
 */
const KEPT_MAX = 12;
const KEPT_VIEWS_MAX = 300_000;

export function createHistoryReader(parts: {
  context: CommandContext;
  queueTimeoutMs: number;
}): HistoryReader {
  let kept: { of: string; fold: Fold }[] = [];
  /** One fold at a time: queries for the past must not slow down the present. */
  const inTurn = createFairQueue(PLACES, 'event-log');

  function keep(of: string, fold: Fold): void {
    const others = kept.filter((one) => one.of !== of || one.fold.upTo !== fold.upTo);
    let views = 0;
    kept = [{ of, fold }, ...others].slice(0, KEPT_MAX).filter((one, place) => {
      views += one.fold.views.size;
      return place === 0 || views <= KEPT_VIEWS_MAX;
    });
  }

  /** One turn of a fold; an incomplete one is kept, and the next turn goes on there. */
  async function foldSome<View>(
    projection: StateProjection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold> {
    const of = subjects.join(' ');
    const nearest = kept
      .filter((one) => one.of === of && one.fold.upTo <= upTo)
      .reduce((best, one) => (one.fold.upTo > best.upTo ? one.fold : best), nothing);
    // It is used up. If this turn fails, its views are those of no sequence.
    if (!nearest.isWhole) kept = kept.filter(({ fold }) => fold !== nearest);
    const step = { from: nearest, upTo, withinMs: TURN_MS };
    const folded = await foldUpTo(parts.context.eventStore, projection, subjects, step);
    keep(of, folded);
    return folded;
  }

  /** The whole fold, in as many turns of the organization as it takes. */
  async function fold<View>(
    asker: Asker,
    projection: StateProjection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold> {
    for (;;) {
      const folded = await inTurn(asker.organizationId, async () => {
        const turnAt = performance.now();
        const some = await foldSome(projection, subjects, upTo);
        asker.foldedMs += performance.now() - turnAt;
        return some;
      });
      if (folded.isWhole) return folded;
      if (asker.foldedMs < FOLD_MS && performance.now() - asker.cameAt < ANSWER_MS) continue;
      const reason = `folded up to ${folded.upTo} of ${upTo} so far`;
      throw new Unavailable('event-log', new Error(reason));
    }
  }
  const foldSessions = (asker: Asker, upTo: number) =>
    fold(asker, organizationSessions, [sessionsOf(asker.organizationId)], upTo);

  return {
    async session(organizationId, id, at) {
      const { context } = parts;
      const sequence = await sequenceAt(context, at);
      const session = { kind: 'session', organizationId, id } as const;
      const { state } = await loadState<'session'>(context.eventStore, session, { upTo: sequence });
      if (state === null) return null;
      const moment = { at, upTo: sequence, queueTimeoutMs: parts.queueTimeoutMs };
      const place = isAwaitingServer(state)
        ? await inTurn(organizationId, () => queuePlaceAt(context, state, moment))
        : null;
      return { state, place };
    },
    async sessions(organizationId, query, at) {
      const upTo = await sequenceAt(parts.context, at);
      return pageOf(await foldSessions(newAsker(organizationId), upTo), query);
    },
    async counts(organizationId, lists, at) {
      const upTo = await sequenceAt(parts.context, at);
      const asker = newAsker(organizationId);
      const fleetsWorkloads = await fold(asker, workloads, filters.workloads, upTo);
      const fleetsServers = await fold(asker, servers, filters.servers, upTo);
      const sessions = await foldSessions(asker, upTo);
      return {
        workloads: countsOf(fleetsWorkloads, lists.workloads),
        servers: countsOf(fleetsServers, lists.servers),
        sessions: countsOf(sessions, lists.sessions),
      };
    },
  };
}

/** A request with the time that its turns have taken. */
type Asker = { organizationId: string; cameAt: number; foldedMs: number };

function newAsker(organizationId: string): Asker {
  return { organizationId, cameAt: performance.now(), foldedMs: 0 };
}

/** Like the store: the views that are in all of the lists, highest order first. */
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
