import { organizationSessions } from '#projections/organization-sessions.ts';
import { servers } from '#projections/servers.ts';
import type { Page, PageQuery } from '#projections/store/views.ts';
import { workloads } from '#projections/workloads.ts';
import { filters, sessionsOf } from '#events/subjects.ts';
import type { SessionState } from '#events/session.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { loadState, sequenceAt } from '#src/kernel/event-store/load-state.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import type { Fold } from './past-fold.ts';
import { createFolds, newAsker, type Asker } from './past-folds.ts';
import { foldSeries, type PoolPoint, type SeriesRange } from './pool-series.ts';
import { LATE_MS, queuePlaceAt } from './past-queue.ts';
import { createWaitingLine, type Waiting } from './waiting-line.ts';
import { isAwaitingServer } from '#src/kernel/domain/session/session.ts';
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
  /** The pool over time, with the waiting sessions of the organization; null: of all. */
  pool(organizationId: string | null, range: SeriesRange): Promise<PoolPoint[]>;
  /** The sessions of all organizations that wait now, the longest waiting one first. */
  waiting(): Promise<Waiting[]>;
};
export type PastSession = { state: SessionState; place: QueuePlace | null };
export type Lists = Record<'workloads' | 'servers' | 'sessions', readonly string[]>;

type Parts = { context: CommandContext; queueTimeoutMs: number };

export function createHistoryReader(parts: Parts): HistoryReader {
  const folds = createFolds(parts);
  const foldSessions = (asker: Asker, upTo: number) =>
    folds.fold(asker, organizationSessions, [sessionsOf(asker.organizationId)], upTo);

  return {
    async session(organizationId, id, at) {
      const { context } = parts;
      const sequence = await sequenceAt(context, at);
      const session = { kind: 'session', organizationId, id } as const;
      const { state } = await loadState<'session'>(context.eventStore, session, { upTo: sequence });
      if (state === null) return null;
      const moment = { at, upTo: sequence, queueTimeoutMs: parts.queueTimeoutMs };
      const place = isAwaitingServer(state)
        ? await folds.inTurn(organizationId, () => queuePlaceAt(context, state, moment))
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
      const fleetsWorkloads = await folds.fold(asker, workloads, filters.workloads, upTo);
      const fleetsServers = await folds.fold(asker, servers, filters.servers, upTo);
      const sessions = await foldSessions(asker, upTo);
      return {
        workloads: countsOf(fleetsWorkloads, lists.workloads),
        servers: countsOf(fleetsServers, lists.servers),
        sessions: countsOf(sessions, lists.sessions),
      };
    },
    async pool(organizationId, range) {
      const { context, queueTimeoutMs } = parts;
      const asker = newAsker(organizationId ?? OPERATOR);
      const begin = await sequenceAt(context, range.from);
      const upTo = await sequenceAt(context, range.to);
      const waitingAfter = await sequenceAt(context, range.from - queueTimeoutMs - LATE_MS);
      const browsers = await folds.fold(asker, workloads, filters.workloads, begin);
      const sessions = { waitingAfter, upTo, organizationId };
      return folds.inTurn(asker.organizationId, () =>
        foldSeries(context.eventStore, range, { ...browsers, upTo: begin }, sessions),
      );
    },
    waiting: () => folds.inTurn(OPERATOR, () => waitingNow(parts)),
  };
}

/** Whose turn it is where no organization asks. */
const OPERATOR = '';

async function waitingNow({ context, queueTimeoutMs }: Parts): Promise<Waiting[]> {
  const line = createWaitingLine();
  const after = await sequenceAt(context, context.now() - queueTimeoutMs - LATE_MS);
  const range = { subjects: filters.waiting, after, onUnreadable: refuseUnknown };
  for await (const batch of context.eventStore.read(range))
    for (const event of batch) line.take(event);
  return line.inOrder();
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
