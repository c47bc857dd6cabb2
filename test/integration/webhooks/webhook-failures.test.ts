import { expect, test } from 'vitest';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { BLOCKED_LANES_MAX } from '#src/features/webhooks/progress.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhooks, type WebhooksInMemory } from '#test/support/webhooks/webhooks-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

let { app, receivers, startSender: start, stopNew } = {} as WebhooksInMemory;
beforeAll(async () => {
  ({ app, receivers, startSender: start, stopNew } = await openWebhooks());
});
afterAll(() => app[Symbol.asyncDispose]());

const types = ['session.stopped'];

type Changes = Parameters<WebhooksInMemory['startSender']>[0];

const startSender = (changes: Changes = {}) =>
  start({ pauses: Array.from({ length: 1_000 }, () => 20), timeoutMs: 500, ...changes });

/** Gives events one by one; the last two of the organizations come late. */
function slowly(eventStore: EventStore, end: number): EventStore {
  async function* oneByOne(batches: AsyncIterable<RecordedEvent[]>) {
    for await (const batch of batches)
      for (const event of batch) {
        // Enough for a sender that does not wait for it: its leases are taken within 1.5 s.
        if (isOf('organization', event) && event.sequence >= end - 1) await sleep(2_000);
        yield [event];
      }
  }
  return {
    ...eventStore,
    read: (range) => oneByOne(eventStore.read({ ...range, canSkip: () => false })),
    subscribe: (options) => oneByOne(eventStore.subscribe({ ...options, canSkip: () => false })),
  };
}

test('a process that starts sends to webhooks as they are now, not as they were once', async () => {
  await using moved = await receivers.open({ types });
  await using removed = await receivers.open({ types });
  await using target = await receivers.open({ types: ['organization.key-issued'] });
  await stopNew();
  target.setSecret(moved.secret);
  expect((await moved.change({ url: target.url })).status).toBe(200);
  expect((await removed.remove()).status).toBe(204);
  const { eventStore } = app.context;
  await using _ = startSender({
    context: { ...app.context, eventStore: slowly(eventStore, await eventStore.lastSequence()) },
  });
  await eventually(() => target.received.length > 0, 'the new URL gets it');
  expect([moved.received, removed.received]).toEqual([[], []]);
});

test('pauses stay as they are while attempts cannot be listed', async () => {
  await using hook = await receivers.open({ types }, () => 500);
  const { records } = app.webhooks;
  let notes = 0;
  const note = async () => {
    notes += 1;
    throw new Error('the list does not answer');
  };
  {
    await using _ = startSender({ records: { ...records, note }, pauses: [50, 3_600_000] });
    await stopNew();
    await eventually(() => notes >= 2, 'two attempts cannot be listed');
    // The end of the sender waits for what is under way, and stores it.
  }
  const { progress } = await records.load(hook.id);
  const [lane] = Object.values(progress?.lanes ?? {});
  expect(lane?.attempts).toBe(2);
  expect((lane?.nextAt ?? 0) - Date.now()).toBeGreaterThan(3_000_000);
});

test('an endpoint that is back gets what waits at its next success, without its long pauses', async () => {
  let isBroken = true;
  await using hook = await receivers.open({ types }, () => (isBroken ? 503 : 204));
  await using _ = startSender({ pauses: [3_600_000, 3_600_000] });
  for (let count = 0; count < 4; count += 1) await stopNew();
  await eventually(() => hook.received.length === 4, 'each session has failed once');
  isBroken = false;
  await stopNew();
  await eventually(async () => (await hook.get()).waiting === 0, 'all arrive');
  expect(new Set(hook.received.map(({ id }) => id)).size).toBe(5);
  expect((await hook.get()).failing_since).toBeNull();
});

test('a webhook that waits as a whole probes, is not disabled by that, and goes on', async () => {
  let isBroken = true;
  await using hook = await receivers.open({ types }, () => (isBroken ? 503 : 204));
  await using _ = startSender({ pauses: [3_600_000], probeEveryMs: 50 });
  for (let count = 0; count < BLOCKED_LANES_MAX; count += 1) await stopNew();
  const ids = () => new Set(hook.received.map(({ id }) => id));
  await eventually(() => ids().size === BLOCKED_LANES_MAX, 'each session has failed');
  // More than one pause allows for: two attempts of each session.
  await eventually(() => hook.received.length > 2 * BLOCKED_LANES_MAX, 'it probes');
  expect((await hook.get()).disabled).toBeNull();
  await stopNew();
  isBroken = false;
  await eventually(() => ids().size === BLOCKED_LANES_MAX + 1, 'it reads on');
  await eventually(async () => (await hook.get()).waiting === 0, 'all arrive');
});

test('the webhooks of an organization have 32 deliveries under way at most', async () => {
  await using stack = new AsyncDisposableStack();
  for (let count = 0; count < 10; count += 1)
    stack.use(await receivers.open({ types }, () => null));
  for (let count = 0; count < 4; count += 1) await stopNew();
  await using _ = startSender({ timeoutMs: 60_000 });
  await eventually(() => receivers.underWay.now >= 32, 'the slots are taken');
  // All parts are taken by then: another webhook's delivery would begin, too.
  await sleep(2_000);
  expect(receivers.underWay.most).toBe(32);
});
