import type { RecordedOf, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type {
  AppendResult,
  StreamAppend,
  EventStore,
} from '#src/kernel/event-store/event-store.ts';
import type { StateCache } from '#src/kernel/event-store/state-cache.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { sessionRef } from './given-when-then.ts';
import { MINUTE, T0 } from './examples.ts';

export const ledgerRef = { kind: 'ledger', organizationId: sessionRef.organizationId } as const;

export type Watched = EventStore & {
  inner: EventStore;
  appends: (readonly StreamAppend[])[];
  /** `<kind>` for a read of a replica, `<kind> leader` for one of the leader. */
  reads: string[];
  /** Runs between a decision and its append. */
  beforeAppend: (changes: readonly StreamAppend[]) => Promise<unknown>;
  /** Runs before each read of an aggregate's last event. */
  beforeRead: (kind: AggregateKind) => Promise<unknown>;
  /** Replaces the store's own answer. */
  answer: AppendResult | null;
  /** The answer of a replica; undefined: the correct one. */
  replicaOf: (aggregate: RefOf<AggregateKind>) => RecordedOf<AggregateKind> | null | undefined;
};

/**
 * The memory event store, whose reads and appends can be watched and disturbed; an organization has
 * credits.
 */
export async function watchedLog({ credits = 600 } = {}): Promise<Watched> {
  const inner = createMemoryEventStore();
  await grant(inner, credits);
  const log: Watched = {
    ...inner,
    inner,
    appends: [],
    reads: [],
    beforeAppend: () => Promise.resolve(),
    beforeRead: () => Promise.resolve(),
    answer: null,
    replicaOf: () => undefined,
    async append(changes) {
      log.appends.push(changes);
      await log.beforeAppend(changes);
      return log.answer ?? inner.append(changes);
    },
    async readLast<Kind extends AggregateKind>(
      aggregate: RefOf<Kind>,
      options?: { fromLeader?: boolean },
    ) {
      await log.beforeRead(aggregate.kind);
      const isLeader = options?.fromLeader === true;
      log.reads.push(isLeader ? `${aggregate.kind} leader` : aggregate.kind);
      const lagging = isLeader ? undefined : log.replicaOf(aggregate);
      if (lagging === undefined) return inner.readLast<Kind>(aggregate, options);
      return lagging as RecordedOf<Kind> | null;
    },
  };
  return log;
}

/** Runs once, and does nothing from then on. */
export function once(run: (changes: readonly StreamAppend[]) => Promise<unknown>) {
  let isDone = false;
  return async (changes: readonly StreamAppend[]) => {
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

/** A clock that stands half an hour after the request. */
export function context(eventStore: EventStore, stateCache?: StateCache) {
  return createCommandContext(eventStore, () => T0 + 30 * MINUTE, stateCache);
}

export function grant(eventStore: EventStore, credits: number) {
  const line = { type: 'ledger.credits-granted', data: { credits } } as const;
  return handleCommand<'ledger'>(context(eventStore), ledgerRef, () => [line], newCause());
}
