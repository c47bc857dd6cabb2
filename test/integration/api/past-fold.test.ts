import { describe, expect, it } from 'vitest';
import type { RecordedEvent, RefOf } from '#events/events.ts';
import { sessionsOf, type AggregateKind } from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { foldUpTo, nothing, type Fold } from '#src/roles/api/time-travel/past-fold.ts';
import { createHistoryReader } from '#src/roles/api/time-travel/history-reader.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore, ReadOptions } from '#src/kernel/event-store/event-store.ts';
import { accessed, aSession, change, queued, requested } from '#test/support/events.fixture.ts';

const organization = 'org_past';
const subjects = [sessionsOf(organization)];
const withinMs = 60_000;

/** An event store with some sessions of an organization, and other sessions between them. */
async function someLog(): Promise<EventStore> {
  const eventStore = createMemoryEventStore();
  for (let at = 0; at < 30; at += 1) {
    const session = aSession(at % 3 === 0 ? undefined : organization);
    const before = await eventStore.lastSequence();
    await eventStore.append([change(0, requested(session))]);
    // The events carry the folded state: nothing else is recorded of a queued session.
    const next = at % 2 === 0 ? queued(session) : accessed(session);
    if (at % 5 !== 0) await eventStore.append([change(before + 1, next)]);
  }
  return eventStore;
}

/** The same event store, whose events up to a sequence carry states of an older version. */
function withOldStates(eventStore: EventStore, upTo: number): EventStore {
  const age = <Event extends RecordedEvent | null>(event: Event): Event =>
    event !== null && event.sequence <= upTo ? { ...event, state: null } : event;
  return {
    ...eventStore,
    async *subscribe(options) {
      for await (const batch of eventStore.subscribe(options)) yield batch.map(age);
    },
    async readLastUpTo<Kind extends AggregateKind>(aggregate: RefOf<Kind>, sequence: number) {
      const last = await eventStore.readLastUpTo<Kind>(aggregate, sequence);
      return age(last as RecordedEvent | null) as typeof last;
    },
  };
}

function summary({ upTo, views }: Fold) {
  return [upTo, [...views].map(([key, { text, names, order }]) => [key, text, [...names], order])];
}

describe('a fold of the past', () => {
  it('in turns equals a fold at once, also where a turn ends at the wanted sequence', async () => {
    const eventStore = await someLog();
    const end = await eventStore.lastSequence();
    // A batch for each event, and a turn for each batch.
    const eachAlone = {
      ...eventStore,
      read: (range: ReadOptions) => eventStore.read({ ...range, batchMax: 1 }),
    };
    let fold = nothing;
    const turns: number[] = [];
    do {
      fold = await foldUpTo(eachAlone, organizationSessions, subjects, {
        from: fold,
        upTo: end,
        withinMs: -1,
      });
      turns.push(fold.upTo);
      const same = await foldUpTo(eventStore, organizationSessions, subjects, {
        from: nothing,
        upTo: fold.upTo,
        withinMs,
      });
      expect(summary(fold)).toEqual(summary(same));
      const ended = await foldUpTo(eventStore, organizationSessions, subjects, {
        from: fold,
        upTo: fold.upTo,
        withinMs,
      });
      expect(ended.isWhole).toBe(true);
    } while (!fold.isWhole);
    expect(turns.length).toBeGreaterThan(10);
    expect(turns).toEqual(turns.toSorted((a, b) => a - b));
  });

  it('that continues an earlier one equals a fold from the beginning', async () => {
    const eventStore = await someLog();
    const end = await eventStore.lastSequence();
    for (let upTo = 0; upTo <= end; upTo += 5) {
      const whole = await foldUpTo(eventStore, organizationSessions, subjects, {
        from: nothing,
        upTo,
        withinMs,
      });
      const half = { from: nothing, upTo: Math.floor(upTo / 2), withinMs };
      const from = await foldUpTo(eventStore, organizationSessions, subjects, half);
      const continued = await foldUpTo(eventStore, organizationSessions, subjects, {
        from,
        upTo,
        withinMs,
      });
      expect(summary(continued)).toEqual(summary(whole));
    }
  });

  it('ignores states of another version of the fold, and folds the events instead', async () => {
    const eventStore = await someLog();
    const upTo = await eventStore.lastSequence();
    const whole = await foldUpTo(eventStore, organizationSessions, subjects, {
      from: nothing,
      upTo,
      withinMs,
    });
    for (const old of [upTo, upTo / 2, 7]) {
      const aged = withOldStates(eventStore, old);
      const same = await foldUpTo(aged, organizationSessions, subjects, {
        from: nothing,
        upTo,
        withinMs,
      });
      expect(summary(same)).toEqual(summary(whole));
      const from = await foldUpTo(eventStore, organizationSessions, subjects, {
        from: nothing,
        upTo: 9,
        withinMs,
      });
      const on = await foldUpTo(aged, organizationSessions, subjects, { from, upTo, withinMs });
      expect(summary(on)).toEqual(summary(whole));
    }
  });
});

describe('the past of an organization', () => {
  it('is read from the event store once for all requested pages', async () => {
    const eventStore = await someLog();
    let read = 0;
    const watched: EventStore = {
      ...eventStore,
      async *subscribe(options) {
        for await (const batch of eventStore.subscribe(options)) {
          read += batch.length;
          yield batch;
        }
      },
    };
    const past = createHistoryReader({
      context: createCommandContext(watched, Date.now),
      queueTimeoutMs: 60_000,
    });
    const at = Date.now() - 1_000;
    const lists = [`${organization}/all`];
    const first = await past.sessions(organization, { lists, offset: 0, limit: 10 }, at);
    const once = read;
    const second = await past.sessions(organization, { lists, offset: 10, limit: 10 }, at);
    expect([first.total, second.total, read]).toEqual([20, 20, once]);
    const rows = JSON.parse(`[${first.items},${second.items}]`) as { id: string }[];
    expect(new Set(rows.map(({ id }) => id)).size).toBe(20);
  });

  it('is refused if too many requests wait, and answered again afterwards', async () => {
    const eventStore = await someLog();
    const past = createHistoryReader({
      context: createCommandContext(eventStore, Date.now),
      queueTimeoutMs: 60_000,
    });
    const query = { lists: [`${organization}/all`], offset: 0, limit: 1 };
    const at = Date.now() - 1_000;
    const ask = () => past.sessions(organization, query, at);
    const answers = await Promise.allSettled(Array.from({ length: 40 }, ask));
    const refused = answers.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(answers.length - refused.length).toBe(8);
    expect((await ask()).total).toBe(20);
  });

  it('is answered promptly while another organization fills all of its places', async () => {
    const eventStore = await someLog();
    const hostile = sessionsOf('org_hostile');
    const letGo = new AbortController();
    // The other organization's history has no end until it is let go.
    const endless: EventStore = {
      ...eventStore,
      async *read(range) {
        if (!range.subjects.includes(hostile)) return yield* eventStore.read(range);
        while (!letGo.signal.aborted) {
          await new Promise(setImmediate);
          yield [];
        }
      },
    };
    const past = createHistoryReader({
      context: createCommandContext(endless, Date.now),
      queueTimeoutMs: 60_000,
    });
    const at = Date.now() - 1_000;
    const pageFor = (id: string) =>
      past.sessions(id, { lists: [`${id}/all`], offset: 0, limit: 1 }, at);
    const hers = Promise.allSettled(Array.from({ length: 30 }, () => pageFor('org_hostile')));
    expect((await pageFor(organization)).total).toBe(20);
    letGo.abort();
    const refused = (await hers).filter(({ status }) => status === 'rejected');
    expect(refused.length).toBe(22);
  });
});
