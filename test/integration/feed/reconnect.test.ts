import fc from 'fast-check';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createFeed } from '#src/roles/feed/feed.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { runs } from '#test/support/seeds/seeds.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { listen, type Listener } from '#test/support/clients/feed-listener.ts';

const ORGANIZATION = 'acme';

/** Actions of a client and of the service, in any order. */
type Step =
  | { do: 'append'; count: number; organizationId: string }
  | { do: 'reconnect'; room: number; process: number }
  | { do: 'take'; bytes: number }
  | { do: 'wait'; turns: number };

const room = fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 20_000 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      count: fc.integer({ min: 1, max: 130 }),
      organizationId: fc.constantFrom(ORGANIZATION, ORGANIZATION, 'other'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reconnect' as const),
      room,
      process: fc.integer({ min: 0, max: 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take' as const), bytes: room }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      turns: fc.integer({ min: 1, max: 30 }),
    }),
  },
);

it('the events over any number of reconnects are all events, once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24 }), async (steps) => {
      const eventStore = createMemoryEventStore();
      const logger = pino({ level: 'silent' });
      const limits = { clientsMax: 9, clientsPerOrganizationMax: 9 };
      // Two processes on one event store: a reconnect may reach either.
      await using one = createFeed({ ...limits, eventStore, logger });
      await using two = createFeed({ ...limits, eventStore, logger });
      const feeds = [one, two];
      const expected: number[] = [];
      const received: number[] = [];
      const appending: Promise<unknown>[] = [];
      let listener: Listener = await listen(one, { organizationId: ORGANIZATION });

      async function append(organizationId: string, count: number): Promise<void> {
        const sequences = await appendEach(eventStore, aSession(organizationId), count);
        if (organizationId === ORGANIZATION) expected.push(...sequences);
      }
      async function reconnect(process: number, newRoom: number): Promise<void> {
        listener.leave();
        received.push(...listener.sequences());
        const options = { organizationId: ORGANIZATION, room: newRoom };
        const feed = feeds[process] ?? one;
        listener = await listen(feed, { ...options, begin: listener.lastId() });
      }
      for (const happens of steps) {
        if (happens.do === 'append') {
          const { organizationId, count } = happens;
          // Not awaited: the other actions happen at the same time.
          appending.push(append(organizationId, count));
        } else if (happens.do === 'reconnect') await reconnect(happens.process, happens.room);
        else if (happens.do === 'take') listener.take(happens.bytes);
        else for (let turn = 0; turn < happens.turns; turn += 1) await new Promise(setImmediate);
      }
      await Promise.all(appending);
      await reconnect(0, Infinity);
      const all = () => received.length + listener.sequences().length >= expected.length;
      await eventually(all, 'the rest');
      expect([...received, ...listener.sequences()]).toEqual(expected.toSorted((a, b) => a - b));
    }),
    { numRuns: runs(60) },
  );
});
