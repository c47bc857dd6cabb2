import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EVENTS_STREAM, filters } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { startFlakyTcpProxy, type FlakyTcpProxy } from '#test/support/servers/flaky-tcp-proxy.ts';
import { appendEach, openRealLog, type RealLog } from '#test/support/stores/event-stores.ts';

const SOON = { timeout: 60_000 };

/**
 * Why subscriptions use an ordered consumer of ours (src/kernel/event-store/README.md, Decisions).
 * If a release of the library changes what is asserted here, ours can be removed.
 */
describe('an event whose delivery is lost with the connection', () => {
  let opened: RealLog;
  let proxy: FlakyTcpProxy;
  let connection: JetStreamConnection;
  beforeEach(async () => {
    opened = await openRealLog();
    proxy = await startFlakyTcpProxy(opened.nats.port);
    connection = await connectJetStream({ url: `nats://127.0.0.1:${proxy.port}` });
  });
  afterEach(async () => {
    await connection?.[Symbol.asyncDispose]();
    await proxy?.[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
  });

  /** Appends an event; the connection breaks while the server delivers it. */
  async function appendAndLose() {
    proxy.breakOn('session.');
    await appendEach(opened.eventStore, aSession(), 1);
    await expect.poll(() => proxy.breaks()).toBe(1);
  }

  test('the library’s ordered consumer delivers it only when another event is appended', async () => {
    const consumer = await connection.js.consumers.get(EVENTS_STREAM, { opt_start_seq: 1 });
    const messages = await consumer.consume({ idle_heartbeat: 2_000 });
    const received: number[] = [];
    const statuses: string[] = [];
    const reading = (async () => {
      for await (const message of messages) received.push(message.seq);
    })();
    const noting = (async () => {
      for await (const { type } of messages.status()) statuses.push(type);
    })();
    await expect.poll(() => statuses).toContain('heartbeat');

    await appendAndLose();
    statuses.splice(0);
    const heartbeats = () => statuses.filter((type) => type === 'heartbeat').length;
    await expect.poll(heartbeats).toBeGreaterThan(1);
    const { delivered, num_pending: pending } = await consumer.info();
    expect({ received, last: delivered.stream_seq, pending }).toEqual({
      received: [],
      last: 1,
      pending: 0,
    });

    await appendEach(opened.eventStore, aSession(), 1);
    await expect.poll(() => received, SOON).toEqual([1, 2]);
    await messages.close();
    await Promise.all([reading, noting]);
  });

  test('ours delivers it after the reconnect', async () => {
    const stop = new AbortController();
    const received: number[] = [];
    let isReceiving = false;
    const options = {
      subjects: filters.all,
      after: 0,
      signal: stop.signal,
      onUnreadable: () => undefined,
      onReceiving: (hears: boolean) => (isReceiving = hears),
    };
    const reading = (async () => {
      for await (const batch of createJetStreamEventStore(connection).subscribe(options))
        received.push(...batch.map(({ sequence }) => sequence));
    })();
    await expect.poll(() => isReceiving, SOON).toBe(true);

    await appendAndLose();
    await expect.poll(() => received, SOON).toEqual([1]);
    stop.abort();
    await reading;
  });
});
