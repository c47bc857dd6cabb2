import { expect, test } from 'vitest';
import type { RecordedEvent, RefOf } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { EventStore, HistoryOptions } from '#src/kernel/event-store/event-store.ts';
import { READ_SPAN } from '#src/features/webhooks/sender/read-events.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhooks, type WebhooksInMemory } from '#test/support/webhooks/webhooks-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

let { app, receivers, startSender, stopNew } = {} as WebhooksInMemory;
beforeAll(async () => {
  ({ app, receivers, startSender, stopNew } = await openWebhooks());
});
afterAll(() => app[Symbol.asyncDispose]());

/** Sequences between two events: what lies between is of other organizations. */
const APART = 100_000;
const ADMIN = { authorization: 'Bearer admin' };

/** The store as it is where the organization has few of the events; notes what is read of it. */
function sparse(eventStore: EventStore, spans: number[]): EventStore {
  const far = <Event extends { sequence: number }>(event: Event): Event => ({
    ...event,
    sequence: event.sequence * APART,
  });
  async function* moved(batches: AsyncIterable<RecordedEvent[]>) {
    for await (const batch of batches) yield batch.map(far);
  }
  const near = (sequence: number) => Math.floor(sequence / APART);
  return {
    ...eventStore,
    lastSequence: async () => (await eventStore.lastSequence()) * APART,
    async *history<Kind extends AggregateKind>(aggregate: RefOf<Kind>, options?: HistoryOptions) {
      for await (const event of eventStore.history<Kind>(aggregate, options)) yield far(event);
    },
    async *read({ after = 0, upTo = Infinity, ...options }) {
      if (options.includesArchive === true) {
        spans.push(upTo - after);
        // As long as an archive in an object store takes for some of its frames.
        await sleep(30);
      }
      yield* moved(eventStore.read({ ...options, after: near(after), upTo: near(upTo) }));
    },
    subscribe: ({ after, ...options }) =>
      moved(eventStore.subscribe({ ...options, after: after === 'end' ? after : near(after) })),
  };
}

test('a replay from the beginning reads so many sequences at once, and stores how far it is', async () => {
  await using hook = await receivers.open({ types: ['session.stopped'] });
  for (let count = 0; count < 3; count += 1) await stopNew();
  expect((await app.request('POST', `${hook.path}/replay`, { from: 1 }, ADMIN)).status).toBe(202);
  const { records } = app.webhooks;
  const spans: number[] = [];
  const positions = new Set<number>();
  const eventStore = sparse(app.context.eventStore, spans);
  await using _ = startSender({
    context: { ...app.context, eventStore },
    records: {
      ...records,
      async save(webhookId, progress, revision) {
        if (hook.received.length === 0) positions.add(progress.position);
        return records.save(webhookId, progress, revision);
      },
    },
  });
  await eventually(() => hook.received.length === 3, 'all are sent again');
  expect(Math.max(...spans)).toBeLessThanOrEqual(READ_SPAN);
  expect(positions.size).toBeGreaterThan(1);
});
