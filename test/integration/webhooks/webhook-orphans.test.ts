import { expect, test } from 'vitest';
import type { EventStore, ReadOptions } from '#src/kernel/event-store/event-store.ts';
import { WEBHOOKS_LEASE } from '#src/features/webhooks/sender/webhook-sender.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhooks, type WebhooksInMemory } from '#test/support/webhooks/webhooks-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

/** An organization whose events cannot be decoded. */
let damaged: string | null = null;

/** Reports those events and leaves them out, as the adapter of JetStream does. */
function withDamage(eventStore: EventStore): EventStore {
  async function* read(range: ReadOptions) {
    for await (const batch of eventStore.read(range))
      for (const event of batch) {
        const { sequence, aggregate } = event;
        const isDamaged = 'organizationId' in aggregate && aggregate.organizationId === damaged;
        const poison = { sequence, subject: 'evt', reason: 'it is damaged' };
        if (isDamaged) range.onUnreadable({ ...poison, kind: 'malformed' });
        else yield [event];
      }
  }
  return { ...eventStore, read };
}

let { app, receivers, startSender, stopNew } = {} as WebhooksInMemory;
beforeAll(async () => {
  ({ app, receivers, startSender, stopNew } = await openWebhooks(withDamage));
  await app.registerOther();
});
afterAll(() => app[Symbol.asyncDispose]());

const load = async (id: string) => (await app.webhooks.records.load(id)).progress;
const attempts = (id: string) => app.webhooks.records.attempts(id);

/** Two webhooks with records; the first one is removed while no process sends. */
async function removeUnseen() {
  const hooks = [
    await receivers.open({ types: ['session.stopped'] }),
    await receivers.open({ types: ['session.stopped'] }),
  ] as const;
  {
    await using _ = startSender();
    await stopNew();
    for (const { id } of hooks)
      await eventually(async () => (await attempts(id)).length > 0, 'there are records');
  }
  expect((await hooks[0].remove()).status).toBe(204);
  return hooks;
}

test('the records of a webhook that was removed while no process sent are removed by the next', async () => {
  const [removed, kept] = await removeUnseen();
  await using hooks = new AsyncDisposableStack();
  for (const hook of [removed, kept]) hooks.use(hook);
  const before = await load(kept.id);
  await using sender = startSender();
  await eventually(async () => (await load(removed.id)) === null, 'its progress is removed');
  await eventually(async () => (await attempts(removed.id)).length === 0, 'its attempts are, too');
  await sender[Symbol.asyncDispose]();
  expect((await load(kept.id))?.position).toBeGreaterThanOrEqual(before?.position ?? Infinity);
  expect(await attempts(kept.id)).toHaveLength(1);
});

test('nothing is removed while the events of any organization cannot be read', async () => {
  const [removed, kept] = await removeUnseen();
  await using hooks = new AsyncDisposableStack();
  for (const hook of [removed, kept]) hooks.use(hook);
  damaged = 'umbrella';
  await using sender = startSender();
  const hasLease = async () => (await app.leases.held()).has(WEBHOOKS_LEASE);
  await eventually(hasLease, 'it has the lease');
  await stopNew();
  await eventually(() => kept.received.length > 1, 'the other one gets its event');
  await sender[Symbol.asyncDispose]();
  expect(await load(removed.id)).not.toBeNull();
  damaged = null;
});
