import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DELIVERIES_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { newProgress, opened } from '#src/features/webhooks/progress.ts';
import { createJetStreamWebhookRecords } from '#src/features/webhooks/webhook-records.jetstream.ts';
import { createMemoryWebhookRecords } from '#src/features/webhooks/webhook-records.memory.ts';
import type { AttemptRecord, WebhookRecords } from '#src/features/webhooks/webhook-records.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

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

const attemptAt = (attempt: number): AttemptRecord => ({
  ...{ eventId: `evt_${attempt}`, type: 'session.stopped', sequence: attempt, attempt },
  ...{ at: '2026-11-20T09:30:00.041Z', durationMs: 3, outcome: 'delivered', status: 200 },
  ...{ reason: null, excerpt: 'ok', nextAt: null },
});

const adapters: Record<string, () => WebhookRecords> = {
  memory: createMemoryWebhookRecords,
  jetstream: () => createJetStreamWebhookRecords(connection),
};

describe.each(Object.entries(adapters))('records of webhooks: %s', (_name, open) => {
  test('a progress is replaced only by a process that has read the last one', async () => {
    const records = open();
    const first = newProgress(7);
    expect(await records.load('whk_1')).toEqual({ progress: null, revision: 0 });
    const revision = (await records.save('whk_1', first, 0)) ?? 0;
    expect(await records.load('whk_1')).toEqual({ progress: first, revision });
    const second = opened(first, 'session.ses_1', { sequence: 8, at: 1_000 });
    const later = (await records.save('whk_1', second, revision)) ?? 0;
    expect(later).toBeGreaterThan(revision);
    expect(await records.save('whk_1', first, revision)).toBeNull();
    expect(await records.save('whk_1', first, 0)).toBeNull();
    expect(await records.load('whk_1')).toEqual({ progress: second, revision: later });
    await records.save('whk_9', first, 0);
    expect((await records.webhookIds()).toSorted()).toEqual(['whk_1', 'whk_9']);
    await records.forget('whk_1');
    expect(await records.load('whk_1')).toEqual({ progress: null, revision: 0 });
    expect(await records.webhookIds()).toEqual(['whk_9']);
  });

  test('the last 500 attempts of each webhook are kept, oldest first', async () => {
    const records = open();
    for (let attempt = 1; attempt <= 505; attempt += 1)
      await records.note('whk_2', attemptAt(attempt));
    await records.note('whk_3', attemptAt(1));
    const kept = await records.attempts('whk_2');
    expect([kept.length, kept[0]?.attempt, kept.at(-1)]).toEqual([500, 6, attemptAt(505)]);
    expect(await records.attempts('whk_3')).toEqual([attemptAt(1)]);
    expect(await records.attempts('whk_4')).toEqual([]);
    await records.forget('whk_2');
    expect(await records.attempts('whk_2')).toEqual([]);
  });
});

test('the attempts of all webhooks together have a bound, at which the oldest are dropped', async () => {
  const { config } = await connection.jsm.streams.info(DELIVERIES_STREAM);
  expect(config).toMatchObject({ max_msgs: 200_000, discard: 'old' });
  // NATS reserves bytes, and a server without them would not let the service start.
  expect(config.max_bytes).toBe(-1);
});
