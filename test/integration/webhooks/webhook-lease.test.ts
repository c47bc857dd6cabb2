import { expect, test } from 'vitest';
import { sleep } from '#src/kernel/async/sleep.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import { WEBHOOKS_LEASE } from '#src/features/webhooks/sender/webhook-sender.ts';
import { eventually } from '#test/support/service/service.ts';
import { openWebhooks, type WebhooksInMemory } from '#test/support/webhooks/webhooks-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

let { app, receivers, startSender, stopNew } = {} as WebhooksInMemory;
beforeAll(async () => {
  ({ app, receivers, startSender, stopNew } = await openWebhooks());
});
afterAll(() => app[Symbol.asyncDispose]());

const types = ['session.stopped'];

const holders = async () => [...(await app.leases.held())].filter((one) => one === WEBHOOKS_LEASE);

test('one process sends, and one that stands by goes on where it ends', async () => {
  await using hook = await receivers.open({ types });
  const first = startSender();
  await using _ = startSender();
  await stopNew();
  await eventually(() => hook.received.length === 1, 'one of them sends');
  // Either would send it within that time.
  await sleep(2 * LEASE_MS);
  expect(hook.received).toHaveLength(1);
  await first[Symbol.asyncDispose]();
  await stopNew();
  await eventually(() => hook.received.length === 2, 'the other one goes on', LEASE_MS);
});

test('a process whose lease has run out sends nothing while the store of leases hangs', async () => {
  await using hook = await receivers.open({ types });
  let answer = Promise.resolve();
  let goOn = () => undefined as void;
  const leases: Leases = {
    ...app.leases,
    async acquire(name, holder) {
      await answer;
      return app.leases.acquire(name, holder);
    },
  };
  await using _ = startSender({ leases });
  await eventually(async () => (await holders()).length === 1, 'it has the lease');
  ({ promise: answer, resolve: goOn } = Promise.withResolvers<void>());
  await sleep(LEASE_MS);
  await stopNew();
  await sleep(60_000);
  expect(hook.received).toEqual([]);
  goOn();
  await eventually(() => hook.received.length === 1, 'it is renewed, and sends');
});

test('without webhooks no lease is taken; that of the first one is taken at once', async () => {
  let asked = 0;
  const counted: Leases = {
    ...app.leases,
    acquire: (name, holder) => ((asked += 1), app.leases.acquire(name, holder)),
  };
  await using _ = startSender({ leases: counted });
  // Records of the webhooks of the tests before are removed with it first.
  await sleep(LEASE_MS);
  const atFirst = asked;
  await sleep(10 * LEASE_MS);
  expect(asked).toBe(atFirst);
  {
    await using hook = await receivers.open({ types });
    await stopNew();
    await eventually(() => hook.received.length === 1, 'it is sent', LEASE_MS / 10);
  }
  await eventually(async () => (await holders()).length === 0, 'it is given back');
  const before = asked;
  await sleep(10 * LEASE_MS);
  expect(asked).toBe(before);
});
