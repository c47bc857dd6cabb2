import { expect, it } from 'vitest';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { readPage, SPAN } from '#src/roles/feed/page.ts';
import { change, aSession, accessed } from '#test/support/events.fixture.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';

/** Pages of stored events where little matches, on a clock set by hand. */

const subscription = {
  ...{ organizationId: 'acme', sessionId: null, types: [], labels: [], since: null },
};

/** Reads a page; `passMs` passes whenever the clock is looked at. */
function page(eventStore: EventStore, after: number, end: number, passMs: number) {
  let time = 0;
  const dependencies = {
    eventStore,
    readSlots: createFairSlots({ slots: 1, slotsPerOwner: 1 }),
    onUnreadable: (poison: object) => expect.unreachable(JSON.stringify(poison)),
    now: () => (time += passMs),
  };
  const signal = new AbortController().signal;
  return readPage(dependencies, { subscription, after, limit: 10, signal }, end);
}

it('end after a while among events of others, and go on from there', async () => {
  const eventStore = createMemoryEventStore();
  const session = aSession('acme');
  const [first = 0] = await appendEach(eventStore, session, 1);
  const other = aSession('other');
  let [last = 0] = await appendEach(eventStore, other, 1);
  for (; last < 1.5 * SPAN; last += 1000) {
    const events = Array.from({ length: 1000 }, () => accessed(other, 1));
    const batch = { aggregate: other, expectedSequence: last, events };
    expect((await eventStore.append([batch])).outcome).toBe('appended');
  }
  await eventStore.append([change(first, accessed(session, 2))]);
  const end = await eventStore.lastSequence();

  const begun = await page(eventStore, 0, end, 2_000);
  expect(begun).toMatchObject({ next: SPAN, isMore: true });
  expect(begun.events).toHaveLength(1);
  const rest = await page(eventStore, begun.next, end, 2_000);
  expect(rest).toMatchObject({ next: end, isMore: false });
  expect(rest.events).toHaveLength(1);

  const whole = await page(eventStore, 0, end, 0);
  expect(whole).toEqual({ events: [...begun.events, ...rest.events], next: end, isMore: false });
});
