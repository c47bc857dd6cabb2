import { expect, it } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { readBackwards } from '#src/kernel/event-store/read-backwards.ts';

const BATCH = 500;

/** Holds events of these sequences that differ in nothing else, and notes what was read. */
function storeOf(firstSequence: number, lastSequence: number) {
  const ranges: [after: number, upTo: number][] = [];
  const eventStore = {
    info: async () => ({ id: 'one', firstSequence, lastSequence }),
    async *read({ after, upTo }: { after: number; upTo: number }) {
      ranges.push([after, upTo]);
      // No event is read twice, and none that the store no longer has.
      for (let next = Math.max(after + 1, firstSequence); next <= upTo; next += BATCH) {
        const length = Math.min(BATCH, upTo - next + 1, lastSequence - next + 1);
        yield Array.from({ length: Math.max(0, length) }, (_, at) => ({ sequence: next + at }));
      }
    },
  } as unknown as EventStore;
  return { eventStore, ranges };
}

type Asked = { every: number; limit: number; upTo: number };

/** The sequences of one page; wanted is one event in so many. */
async function pageOf(eventStore: EventStore, { every, limit, upTo }: Asked) {
  const wanted = ({ sequence }: RecordedEvent) => (sequence % every === 0 ? { sequence } : null);
  const range = { subjects: ['all'], upTo, limit };
  const { found, reached } = await readBackwards(eventStore, range, wanted);
  return { found: found.map(({ sequence }) => sequence), reached };
}

it.each([
  { first: 1, last: 30_000, every: 1, limit: 200 },
  { first: 1, last: 30_000, every: 100, limit: 7 },
  { first: 700, last: 30_000, every: 990, limit: 7 },
  { first: 1, last: 30_000, every: 29_000, limit: 7 },
  { first: 29_990, last: 30_000, every: 1, limit: 11 },
  { first: 29_990, last: 30_000, every: 7, limit: 50 },
])('every wanted event is on one page, newest first: %o', async ({ first, last, every, limit }) => {
  const { eventStore } = storeOf(first, last);
  const all: number[] = [];
  for (let upTo = last; upTo > 0;) {
    const { found, reached } = await pageOf(eventStore, { every, limit, upTo });
    expect(reached).toBeLessThan(upTo);
    all.push(...found);
    upTo = reached;
  }
  const wanted = Array.from({ length: last - first + 1 }, (_, at) => last - at);
  expect(all).toEqual(wanted.filter((sequence) => sequence % every === 0));
});

it('a page that ends with the oldest event left in the store is the last', async () => {
  const { eventStore } = storeOf(991, 1_000);
  const { found, reached } = await pageOf(eventStore, { every: 1, limit: 10, upTo: 1_000 });
  expect(found).toHaveLength(10);
  expect(reached).toBe(0);
});

it('a page reads its newest 500 events only, if they suffice', async () => {
  const { eventStore, ranges } = storeOf(1, 100_000);
  await pageOf(eventStore, { every: 10, limit: 50, upTo: 90_000 });
  expect(ranges).toEqual([[89_500, 90_000]]);
});

it('a page without a match ends after eleven million events, where the next one goes on', async () => {
  const ranges: number[] = [];
  const empty = {
    info: async () => ({ id: 'one', firstSequence: 1, lastSequence: 20_000_000 }),
    async *read({ after }: { after: number }) {
      ranges.push(after);
      yield [];
    },
  } as unknown as EventStore;
  const read = 500 * (1 + 4 + 16 + 64 + 256 + 1024 + 4096 + 16_384);
  const page = await pageOf(empty, { every: 1, limit: 1, upTo: 20_000_000 });
  expect(page).toEqual({ found: [], reached: 20_000_000 - read });
  expect(ranges).toHaveLength(8);
});
