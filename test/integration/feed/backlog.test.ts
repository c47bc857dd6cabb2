import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createFeed } from '#src/roles/feed/feed.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { appendEach } from '#test/support/stores/event-stores.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { listen } from '#test/support/clients/feed-listener.ts';

it('a slowly read backlog has no gap, though more events arrive than are kept', async () => {
  const eventStore = createMemoryEventStore();
  const logger = pino({ level: 'silent' });
  await using feed = createFeed({
    eventStore,
    logger,
    clientsMax: 2,
    clientsPerOrganizationMax: 2,
  });
  const backlog = await appendEach(eventStore, aSession('acme'), 120);
  const slow = await listen(feed, { organizationId: 'acme', begin: 0, room: 1_000 });
  const live = await listen(feed, { organizationId: 'acme' });
  const meanwhile = await appendEach(eventStore, aSession('acme'), 2_500);
  await eventually(() => live.sequences().length === meanwhile.length, 'others are not held up');
  expect(slow.sequences().length).toBeLessThan(backlog.length);
  slow.take(Infinity);
  const all = [...backlog, ...meanwhile];
  await eventually(() => slow.sequences().length >= all.length, 'all of it');
  expect(slow.sequences()).toEqual(all);
});
