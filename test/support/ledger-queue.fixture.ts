import type { LedgerState } from '#events/ledger.ts';
import type { RecordedOf } from '#events/events.ts';
import type { StreamAppend } from '#src/kernel/event-store/event-store.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { createSession } from './examples.ts';
import { sessionRef } from './given-when-then.ts';
import { context, grant, ledgerRef, newCause, watchedLog } from './watched-event-store.ts';

const { organizationId } = sessionRef;
const MANY_SESSIONS = { concurrentSessions: 1_000 };

/**
 * Session commands of one organization in two processes, on an event store that can fail.
 * Appends are numbered from 1: those of the process under test since its start.
 * @param credits the organization's credits at the start
 */
export async function openLedgerQueue({ credits = 100_000 } = {}) {
  const store = await watchedLog({ credits });
  const oneProcess = context(store);
  const before: ((append: number) => unknown)[] = [];
  const after = new Map<number, () => unknown>();
  const lost = new Map<number, 'stored' | 'not stored'>();
  store.beforeAppend = async (changes) => {
    const number = store.appends.length;
    store.answer = null;
    for (const run of before) await run(number);
    const fate = lost.get(number);
    const isStoredNow = fate === 'stored' || after.has(number);
    if (isStoredNow) store.answer = await store.inner.append(changes);
    await after.get(number)?.();
    if (fate !== undefined) store.answer = { outcome: 'conflict', outcomeUnknown: true };
  };

  /** Sends a command through the queue of the process under test. */
  const send = (id: string, command: SessionCommand, limits = MANY_SESSIONS) =>
    handleSessionCommand(oneProcess, { organizationId, id }, command, newCause(), limits);
  const create = (id: string, limits = MANY_SESSIONS) => send(id, createSession(), limits);

  return {
    send,
    create,
    /** Announces a create; it is sent by the result's `create`. */
    announce() {
      const ledgerQueues = oneProcess.ledgerQueues.announce(organizationId);
      const announced = { ...oneProcess, ledgerQueues };
      return {
        create: (id: string) =>
          handleSessionCommand(
            announced,
            { organizationId, id },
            createSession(),
            newCause(),
            MANY_SESSIONS,
          ),
        giveUp: () => ledgerQueues[Symbol.dispose](),
      };
    },
    /** Creates `ses_0`, `ses_1` and so on, all at once. */
    createMany: (count: number, limits = MANY_SESSIONS) =>
      Promise.all(Array.from({ length: count }, (_, index) => create(`ses_${index}`, limits))),

    /** Another process with a queue of its own, whose appends do not fail. */
    otherProcess: {
      send(id: string, command: SessionCommand) {
        return handleSessionCommand(
          context(store.inner),
          { organizationId, id },
          command,
          newCause(),
        );
      },
      grantCredits: (amount: number) => grant(store.inner, amount),
    },

    /** Runs between a decision and its append, with the number of the append. */
    beforeEachAppend: (run: (append: number) => unknown) => void before.push(run),
    beforeAppend: (number: number, run: () => unknown) =>
      void before.push((append) => (append === number ? run() : undefined)),
    /** Runs when an append is stored and not answered yet. */
    afterAppend: (number: number, run: () => unknown) => void after.set(number, run),
    /** The answer to an append is lost: the process cannot know whether it is stored. */
    loseAnswer: (number: number, fate: 'stored' | 'not stored') => void lost.set(number, fate),
    /** The answer to the next append is lost, which is stored when the ledger is read after it. */
    storeLate() {
      const number = store.appends.length + 1;
      lost.set(number, 'not stored');
      store.beforeRead = async (kind) => {
        const changes = store.appends[number - 1];
        if (kind !== 'ledger' || changes === undefined) return;
        store.beforeRead = () => Promise.resolve();
        await store.inner.append(changes);
      };
    },
    /** From now on replicas answer reads of the ledger with this event; the leader does not. */
    replicasAnswer(ledger: RecordedOf<'ledger'> | null) {
      store.replicaOf = ({ kind }) => (kind === 'ledger' ? ledger : undefined);
    },

    /** `<kind>` for each read of a replica, `<kind> leader` for each one of the leader. */
    reads: (): readonly string[] => store.reads,
    /** Ids of the sessions whose events were in each append, stored or not. */
    appends: (): string[][] => store.appends.map(sessionIds),
    lastOfSession: (id: string) => store.inner.readLast<'session'>({ ...sessionRef, id }),
    lastOfLedger: () => store.inner.readLast<'ledger'>(ledgerRef),
    async ledger(): Promise<LedgerState | null | undefined> {
      return (await store.inner.readLast<'ledger'>(ledgerRef))?.state;
    },
    async ledgerEvents(): Promise<RecordedOf<'ledger'>[]> {
      return Array.fromAsync(store.inner.history<'ledger'>(ledgerRef));
    },
  };
}

function sessionIds(changes: readonly StreamAppend[]): string[] {
  return changes.flatMap(({ aggregate }) => (aggregate.kind === 'session' ? [aggregate.id] : []));
}
