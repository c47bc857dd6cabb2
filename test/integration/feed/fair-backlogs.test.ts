import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createFeed } from '#src/roles/feed/feed.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore, ReadOptions } from '#src/kernel/event-store/event-store.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { listen } from '#test/support/clients/feed-listener.ts';

/** Backlogs of one organization do not hold up those of another. */

const logger = pino({ level: 'silent' });
const limits = { clientsMax: 100, clientsPerOrganizationMax: 50 };

/** The event store, whose reads for some organizations go on until they are stopped. */
function withLongReads(eventStore: EventStore, isLong: (subject: string) => boolean) {
  let open = 0;
  let most = 0;
  async function* read(options: ReadOptions) {
    if (!options.subjects.some(isLong)) return yield* eventStore.read(options);
    open += 1;
    most = Math.max(most, open);
    try {
      // Batches without a matching event, as far as the reader wants them.
      while (options.signal?.aborted !== true) {
        await new Promise(setImmediate);
        yield [];
      }
    } finally {
      open -= 1;
    }
  }
  return { eventStore: { ...eventStore, read }, open: () => open, most: () => most };
}

it('an organization with many long backlogs reads half of what a process reads at once', async () => {
  const store = createMemoryEventStore();
  const own = await appendEach(store, aSession('globex'), 300);
  await appendEach(store, aSession('acme'), 1);
  const { eventStore, open, most } = withLongReads(store, (subject) => subject.includes('acme'));
  await using feed = createFeed({ ...limits, eventStore, logger });
  for (let stream = 0; stream < 30; stream += 1)
    await listen(feed, { organizationId: 'acme', begin: 0 });
  await eventually(() => open() === 4, 'as many as it may');
  const other = await listen(feed, { organizationId: 'globex', begin: 0 });
  await eventually(() => other.sequences().length === own.length, 'its whole backlog');
  expect(most()).toBe(4);
});

it('two organizations that fill all places give way to a third one', async () => {
  const store = createMemoryEventStore();
  const own = await appendEach(store, aSession('globex'), 300);
  await appendEach(store, aSession('acme'), 1);
  const isLong = (subject: string) => /acme|hooli/.test(subject);
  const { eventStore, open, most } = withLongReads(store, isLong);
  await using feed = createFeed({ ...limits, eventStore, logger });
  for (let stream = 0; stream < 10; stream += 1)
    for (const organizationId of ['acme', 'hooli'])
      await listen(feed, { organizationId, begin: 0 });
  await eventually(() => open() === 8, 'all places are taken');
  const other = await listen(feed, { organizationId: 'globex', begin: 0 });
  await eventually(() => other.sequences().length === own.length, 'its whole backlog');
  expect(most()).toBe(8);
});
