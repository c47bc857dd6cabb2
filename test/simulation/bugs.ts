import type { PendingEvent } from '#events/codec.ts';
import type { LedgerEvent, LedgerState } from '#events/ledger.ts';
import { evolveLedger } from '#src/kernel/domain/organization/ledger.ts';
import type {
  AppendResult,
  EventStore,
  StreamAppend,
} from '#src/kernel/event-store/event-store.ts';
import { newId } from '#src/kernel/ids.ts';
import type { OpenWorkQueue } from '#src/kernel/messaging/work-queue.ts';
import type { Servers } from './roles.ts';
import type { World } from './world.ts';

/** A defect that the servers of a simulation get, and the invariant that it breaks. */
export type Bug = {
  name: string;
  breaks: string;
  /** A seed that finds it, tried first. */
  seed: number;
  /** How long its end is waited for, where some sessions never end with it. Absent: as usual. */
  settleMs?: number;
  plant: (servers: Servers, world: World) => Servers;
};

/** Enough for what still ends; after 15 minutes, the usual time, no more has. */
const NO_END_MS = 60_000;

/** For each invariant a defect that breaks it in some seed. */
export const bugs: readonly Bug[] = [
  {
    name: 'a slot is released twice',
    breaks: 'no slot or credit is lost or doubled',
    seed: 9,
    settleMs: NO_END_MS,
    plant: (servers) => changing(servers, (change) => withLines(change, releasedTwice)),
  },
  {
    name: 'a refund is forgotten',
    breaks: 'no slot or credit is lost or doubled',
    seed: 1,
    plant: (servers) => changing(servers, (change) => withLines(change, withoutRefund)),
  },
  {
    name: 'appends are not checked',
    breaks: 'no organization has more sessions than it may',
    seed: 16,
    settleMs: NO_END_MS,
    plant: (servers) => appending(servers, (changes) => unchecked(servers.eventStore, changes)),
  },
  {
    name: 'the end of some sessions is acknowledged and not stored',
    breaks: 'every session ends, once',
    seed: 5,
    plant: (servers) =>
      appending(servers, (changes) => (changes.some(isUnlucky) ? pretend(changes) : null)),
  },
  {
    name: 'a session is activated on the browser of another one',
    breaks: 'no browser serves two sessions',
    seed: 11,
    plant: (servers) => changing(servers, createBrowserMixUp()),
  },
  {
    name: 'some browsers are not ended',
    breaks: 'every browser ends, and none is left',
    seed: 5,
    plant: (servers) => ({
      ...servers,
      machines: (browsers) => ({
        ...browsers,
        stop: async (id) => (isOneInFive(id) ? undefined : browsers.stop(id)),
      }),
    }),
  },
  {
    name: 'some extensions are acknowledged and not stored',
    breaks: 'what was acknowledged is in the log',
    seed: 1,
    plant: (servers, world) => {
      const random = world.random('bug');
      return appending(servers, (changes) =>
        has(changes, 'session.extended') && random.chance(0.3) ? pretend(changes) : null,
      );
    },
  },
  {
    name: 'an extension is stored twice',
    breaks: 'a repeated request has one effect',
    seed: 1,
    plant: (servers) => changing(servers, extendedTwice),
  },
  {
    name: 'a stored create is not known as such',
    breaks: 'a refused command leaves nothing',
    seed: 1,
    plant: (servers, world) => {
      const random = world.random('bug');
      return appending(servers, async (changes) => {
        if (!has(changes, 'session.requested') || !random.chance(0.2)) return null;
        const { outcome } = await servers.eventStore.append(changes.map(underOtherCommand));
        return outcome === 'appended' ? { outcome: 'conflict' } : { outcome };
      });
    },
  },
  {
    name: 'a request is acknowledged before it is handled',
    breaks: 'no request is forgotten while there is room',
    seed: 10,
    plant: (servers) => ({ ...servers, openWorkQueue: acknowledging(servers.openWorkQueue) }),
  },
  {
    name: 'some views are not written',
    breaks: 'the read model is a fold of the log',
    seed: 1,
    plant: (servers) => ({
      ...servers,
      views: {
        ...servers.views,
        write: (projection, batch) => {
          const writes = batch.writes.filter(({ sequence }) => sequence % 7 !== 0);
          return servers.views.write(projection, { ...batch, writes });
        },
      },
    }),
  },
  {
    name: 'a timer throws',
    breaks: 'no error is left unhandled',
    seed: 1,
    plant: (servers) => ({
      ...servers,
      leases: {
        ...servers.leases,
        held() {
          setTimeout(() => {
            throw new Error('planted');
          }, 1);
          return servers.leases.held();
        },
      },
    }),
  },
];

/** @param instead the answer to give in place of the store's; null: the store's own */
function appending(
  servers: Servers,
  instead: (changes: readonly StreamAppend[]) => AppendResult | null | Promise<AppendResult | null>,
): Servers {
  const { eventStore } = servers;
  const append: EventStore['append'] = async (changes) =>
    (await instead(changes)) ?? eventStore.append(changes);
  return { ...servers, eventStore: { ...eventStore, append } };
}

function changing(servers: Servers, change: (one: StreamAppend) => StreamAppend): Servers {
  return appending(servers, (changes) => servers.eventStore.append(changes.map(change)));
}

async function unchecked(
  eventStore: EventStore,
  changes: readonly StreamAppend[],
): Promise<AppendResult> {
  const forced = changes.map(async (change) => {
    const last = await eventStore.readLast(change.aggregate);
    return { ...change, expectedSequence: last?.sequence ?? 0 };
  });
  return eventStore.append(await Promise.all(forced));
}

/** The answer to an append that is not stored. */
function pretend(changes: readonly StreamAppend[]): AppendResult {
  const events = changes.flatMap((change) => change.events);
  return { outcome: 'appended', sequences: events.map((_, at) => 1_000_000 + at) };
}

function extendedTwice(change: StreamAppend): StreamAppend {
  const events = change.events.flatMap((event) =>
    event.type === 'session.extended' ? [event, { ...event, id: newId('evt') }] : [event],
  );
  return { ...change, events };
}

function underOtherCommand(change: StreamAppend): StreamAppend {
  const events = change.events.map((event) => {
    return { ...event, metadata: { ...event.metadata, commandId: newId('cmd') } };
  });
  return { ...change, events };
}

function has(changes: readonly StreamAppend[], type: string): boolean {
  return changes.some(({ events }) => events.some((event) => event.type === type));
}

function isUnlucky({ aggregate, events }: StreamAppend): boolean {
  const isEnd = events.some(({ type }) => type === 'session.stopped' || type === 'session.failed');
  return isEnd && aggregate.kind === 'session' && isOneInFive(aggregate.id);
}

/** The same ids in each attempt. */
function isOneInFive(id: string): boolean {
  return (id.codePointAt(id.length - 1) ?? 0) % 5 === 0;
}

/** A ledger's change with other lines, and the states that follow from them. */
function withLines(
  change: StreamAppend,
  lines: (event: PendingEvent, after: LedgerState) => PendingEvent[],
): StreamAppend {
  if (change.aggregate.kind !== 'ledger') return change;
  let state: LedgerState | null = null;
  const events = change.events.flatMap((event) => {
    // The first line's state before it is not known here: its own state after it is kept.
    const altered = lines(event, event.state as LedgerState);
    return altered.map((one) => {
      const line = { type: one.type, data: one.data } as LedgerEvent;
      state =
        state === null || one === event ? (one.state as LedgerState) : evolveLedger(state, line);
      return { ...one, state };
    });
  });
  return { ...change, events };
}

function releasedTwice(event: PendingEvent, after: LedgerState): PendingEvent[] {
  const { creditsUsed = 0, creditsRefunded = 0 } = event.data as Record<string, number>;
  const isPossible = after.slotsInUse > 0 && after.creditsReserved >= creditsUsed + creditsRefunded;
  if (event.type !== 'ledger.slot-released' || !isPossible) return [event];
  return [event, { ...event, id: newId('evt') }];
}

function withoutRefund(event: PendingEvent, after: LedgerState): PendingEvent[] {
  if (event.type !== 'ledger.slot-released') return [event];
  const data = event.data as { creditsRefunded: number };
  const creditsAvailable = after.creditsAvailable - data.creditsRefunded;
  if (data.creditsRefunded === 0 || creditsAvailable < 0) return [event];
  const state = { ...after, creditsAvailable };
  return [{ ...event, data: { ...data, creditsRefunded: 0 }, state }];
}

function createBrowserMixUp(): (change: StreamAppend) => StreamAppend {
  let before: string | null = null;
  return (change) => {
    const events = change.events.map((event) => {
      if (event.type !== 'session.activated') return event;
      const data = event.data as { workload: { workloadId: string } };
      const workload = { ...data.workload, workloadId: before ?? data.workload.workloadId };
      before = before === null ? data.workload.workloadId : null;
      const state = { ...(event.state as object), workload };
      return { ...event, data: { ...data, workload }, state };
    });
    return { ...change, events };
  };
}

function acknowledging(open: OpenWorkQueue): OpenWorkQueue {
  return async (name, subjects) => {
    const queue = await open(name, subjects);
    return {
      ...queue,
      async next(waitMs, signal) {
        const delivery = await queue.next(waitMs, signal);
        await delivery?.ack();
        return delivery;
      },
    };
  };
}
