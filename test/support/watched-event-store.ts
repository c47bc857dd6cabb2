import type { RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { createMemoryEventLog } from '#src/event-store/event-store.memory.ts';
import type { Appended, Change, EventLog } from '#src/event-store/event-store.ts';
import { handle } from '#src/commands/handle-command.ts';
import { sessionRef } from './given-when-then.ts';
import { MINUTE, T0 } from './examples.ts';

export const ledgerRef = { kind: 'ledger', organizationId: sessionRef.organizationId } as const;

export type Watched = EventLog & {
  inner: EventLog;
  appends: (readonly Change[])[];
  /** `<kind>` for a read of a replica, `<kind> leader` for one of the leader. */
  reads: string[];
  /** Runs between a decision and its append. */
  beforeAppend: (changes: readonly Change[]) => Promise<unknown>;
  /** In place of the log's own answer. */
  answer: Appended | null;
  /** What a replica answers; undefined: the truth. */
  replicaOf: (aggregate: RefOf<AggregateKind>) => RecordedOf<AggregateKind> | null | undefined;
};

/**
 * The memory log, whose reads and appends can be watched and disturbed; an organization has
 * credits.
 */
export async function watchedLog({ credits = 600 } = {}): Promise<Watched> {
  const inner = createMemoryEventLog();
  await grant(inner, credits);
  const log: Watched = {
    ...inner,
    inner,
    appends: [],
    reads: [],
    beforeAppend: () => Promise.resolve(),
    answer: null,
    replicaOf: () => undefined,
    async append(changes) {
      log.appends.push(changes);
      await log.beforeAppend(changes);
      return log.answer ?? inner.append(changes);
    },
    last<Kind extends AggregateKind>(aggregate: RefOf<Kind>, options?: { fromLeader?: boolean }) {
      const isLeader = options?.fromLeader === true;
      log.reads.push(isLeader ? `${aggregate.kind} leader` : aggregate.kind);
      const lagging = isLeader ? undefined : log.replicaOf(aggregate);
      if (lagging === undefined) return inner.last<Kind>(aggregate, options);
      return Promise.resolve(lagging as RecordedOf<Kind> | null);
    },
  };
  return log;
}

/** Runs once, and is silent from then on. */
export function once(run: (changes: readonly Change[]) => Promise<unknown>) {
  let isDone = false;
  return async (changes: readonly Change[]) => {
    if (isDone) return;
    isDone = true;
    await run(changes);
  };
}

let commands = 0;

export function newCause() {
  const commandId = `cmd_${(commands += 1)}`;
  const actor = { kind: 'user', id: 'user_1' } as const;
  return { actor, commandId, correlationId: 'cor_1', causationId: null };
}

/** Its clock stands half an hour after the request. */
export function desk(log: EventLog) {
  return { log, now: () => T0 + 30 * MINUTE };
}

export function grant(log: EventLog, credits: number) {
  const line = { type: 'ledger.credits-granted', data: { credits } } as const;
  return handle<'ledger'>(desk(log), ledgerRef, () => [line], newCause());
}
