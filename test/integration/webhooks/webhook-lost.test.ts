import { expect, test } from 'vitest';
import { filters } from '#events/subjects.ts';
import type {
  EventStore,
  ReadOptions,
  UnreadableEvent,
} from '#src/kernel/event-store/event-store.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhooks, type WebhooksInMemory } from '#test/support/webhooks/webhooks-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

/** Events that cannot be decoded, by their sequences. */
const unreadable = new Map<number, UnreadableEvent['kind']>();

/** Reports those events and leaves them out, as the adapter of JetStream does. */
function damaged(eventStore: EventStore): EventStore {
  async function* read(range: ReadOptions) {
    for await (const batch of eventStore.read(range))
      for (const event of batch) {
        const { sequence } = event;
        const kind = unreadable.get(sequence);
        if (kind === undefined) yield [event];
        else range.onUnreadable({ sequence, subject: 'evt.acme', reason: 'it is damaged', kind });
      }
  }
  return { ...eventStore, read };
}

let { app, receivers, startSender, stopNew } = {} as WebhooksInMemory;
beforeAll(async () => {
  ({ app, receivers, startSender, stopNew } = await openWebhooks(damaged));
});
afterAll(() => app[Symbol.asyncDispose]());

const ADMIN = { authorization: 'Bearer admin' };
const types = ['session.stopped'];
const PAUSES = Array.from({ length: 100 }, () => 1_000);

type Listed = { id: string; sequence: number; last: { outcome: string } };

const listedOf = async (hook: { deliveries: () => Promise<unknown> }) =>
  (await hook.deliveries()) as Listed[];

test('each lost event is a delivery of its own, which says what is known of it', async () => {
  await using hook = await receivers.open({ types }, () => 500);
  const sequences = () => hook.received.map(({ data }) => data.sequence);
  {
    await using _ = startSender({ pauses: PAUSES });
    await stopNew();
    await stopNew();
    await eventually(async () => (await listedOf(hook)).length === 2, 'both have failed');
  }
  for (const sequence of sequences()) unreadable.set(sequence, 'malformed');
  const lostIds = sequences().map((sequence) => `lost_${sequence}`);
  await using _ = startSender({ pauses: PAUSES });
  const lost = () =>
    listedOf(hook).then((all) => all.filter(({ last }) => last.outcome === 'lost'));
  await eventually(async () => (await lost()).length === 2, 'both are listed as lost');
  const listed = await lost();
  expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(lostIds));
  for (const { id, sequence } of listed) {
    const path = `${hook.path}/deliveries/${id}`;
    const { status, body } = await app.request('GET', path, undefined, ADMIN);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, sequence, type: 'session.stopped', body: null });
    const outcomes = (body.attempts as Listed['last'][]).map(({ outcome }) => outcome);
    expect([outcomes[0], outcomes.at(-1)]).toEqual(['failed', 'lost']);
  }
  const failed = (await listedOf(hook)).find(({ last }) => last.outcome === 'failed');
  const path = `${hook.path}/deliveries/${failed?.id ?? ''}`;
  const { status, body } = await app.request('GET', path, undefined, ADMIN);
  expect([status, body.body]).toEqual([200, null]);
  expect(lostIds).toContain((await hook.get()).last_delivery.event_id);
  expect(await hook.get()).toMatchObject({ waiting: 0, failing_since: null });
});

test('events before one of a newer version are sent, and those after it wait', async () => {
  await using hook = await receivers.open({ types });
  const { eventStore } = app.context;
  const begin = await eventStore.lastSequence();
  await stopNew();
  await stopNew();
  const range = { subjects: filters.tenants, after: begin, onUnreadable: () => undefined };
  const [first = 0, second = 0] = await eventually(async () => {
    const stopped: number[] = [];
    for await (const batch of eventStore.read(range))
      for (const { type, sequence } of batch) if (type === types[0]) stopped.push(sequence);
    return stopped.length === 2 && stopped;
  }, 'both have ended');
  unreadable.set(second, 'unknown');
  await using _ = startSender({ pauses: PAUSES });
  const sequences = () => hook.received.map(({ data }) => data.sequence);
  await eventually(() => hook.received.length > 0, 'what comes before it is sent');
  expect(sequences()).toEqual([first]);
  unreadable.clear();
  await eventually(() => hook.received.length === 2, 'it is sent once it can be read');
  expect(sequences()).toEqual([first, second]);
});
