import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { keepParts } from '#src/features/webhooks/sender/parts.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { eventually } from '#test/support/service/service.ts';

/** Leases that end five times as soon as the service's, so that a test need not wait for them. */
const leaseMs = 2_000;
const ids = Array.from({ length: 500 }, (_, count) => `whk_${count}`);

let nats: RealNats;
let connection: JetStreamConnection;
beforeAll(async () => {
  nats = await startNats();
  connection = await connectJetStream({ url: nats.url });
});
afterAll(async () => {
  await connection[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

async function startProcess() {
  const stop = new AbortController();
  // Each process has leases of its own, as each has its own memory of what it wrote.
  const leases = await createJetStreamLeases(connection, { leaseMs });
  const parts = keepParts(leases, {
    wanted: () => ids,
    onChange: async () => undefined,
    signal: stop.signal,
    leaseMs,
  });
  return {
    ours: () => ids.filter((id) => parts.isOurs(id)),
    async end() {
      stop.abort();
      await parts.ended;
      await parts.release();
    },
    async die() {
      stop.abort();
      await parts.ended;
    },
  };
}

test('processes share the parts of webhooks by leases in NATS, also after one was killed', async () => {
  const first = await startProcess();
  await eventually(() => first.ours().length === ids.length, 'the first one has all');
  const second = await startProcess();
  const isShared = () => {
    const all = [...first.ours(), ...second.ours()];
    const isEven = Math.min(first.ours().length, second.ours().length) > ids.length / 4;
    return isEven && all.length === ids.length && new Set(all).size === ids.length;
  };
  await eventually(isShared, 'both have half of them');
  await first.die();
  await eventually(() => second.ours().length === ids.length, 'the second one has all');
  await second.end();
  const leases = await createJetStreamLeases(connection, { leaseMs });
  expect([...(await leases.held())].filter((name) => name.startsWith('webhooks-'))).toEqual([]);
});
