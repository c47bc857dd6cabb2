import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { examineStreams } from '#src/kernel/event-store/jetstream/streams.ts';
import type { ConnectionStatus } from '#src/kernel/event-store/jetstream/connection.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

describe('connecting to JetStream', () => {
  let nats: RealNats;
  beforeEach(async () => {
    nats = await startNats();
  });
  afterEach(() => nats[Symbol.asyncDispose]());

  /** Runs a change on the server, as an operator would make it. */
  async function asOperator<Result>(
    work: (jsm: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<Result>,
  ): Promise<Result> {
    const nc = await connect({ servers: nats.url.replace('nats://', '') });
    try {
      return await work(await jetstreamManager(nc));
    } finally {
      await nc.close();
    }
  }

  async function configOf(stream: string) {
    return asOperator(async (jsm) => (await jsm.streams.info(stream)).config);
  }

  test('creates the streams if several processes start at once, and keeps existing ones', async () => {
    const connecting = Array.from({ length: 5 }, () => connectJetStream({ url: nats.url }));
    for (const connection of await Promise.all(connecting)) await connection[Symbol.asyncDispose]();
    await (await connectJetStream({ url: nats.url }))[Symbol.asyncDispose]();

    expect(await configOf('EVENTS')).toMatchObject({
      subjects: ['evt.>', 'fleet.>'],
      storage: 'file',
      retention: 'limits',
      deny_delete: true,
      deny_purge: false,
      allow_atomic: true,
      allow_direct: true,
      republish: { src: 'fleet.>', dest: 'live.fleet.>' },
      duplicate_window: 120_000_000_000,
      max_age: 0,
      max_msgs: -1,
      max_bytes: -1,
      num_replicas: 1,
    });
    expect(await configOf('PUBLIC')).toMatchObject({
      subjects: ['pub.>'],
      storage: 'file',
      deny_delete: true,
      deny_purge: false,
      max_age: 0,
      max_msgs: -1,
    });
    expect(await configOf('TIMERS')).toMatchObject({
      subjects: ['tmr.>'],
      allow_msg_schedules: true,
      allow_msg_ttl: true,
    });
    expect((await configOf('ADVISORY')).max_age).toBe(30 * 24 * 3_600 * 1_000_000_000);
  });

  test('corrects settings that can be changed, and keeps what an operator added', async () => {
    await (await connectJetStream({ url: nats.url }))[Symbol.asyncDispose]();
    await asOperator((jsm) =>
      jsm.streams.update('EVENTS', { duplicate_window: 1_000_000_000, description: 'ours' }),
    );
    await (await connectJetStream({ url: nats.url }))[Symbol.asyncDispose]();
    expect(await configOf('EVENTS')).toMatchObject({
      duplicate_window: 120_000_000_000,
      description: 'ours',
    });
  });

  test('keeps the advisories of its own streams, and none of those that organizations read', async () => {
    await using connection = await connectJetStream({ url: nats.url });
    for (const { differs } of await examineStreams(connection.jsm)) expect(differs).toEqual([]);

    const settle = async (stream: string, subject: string) => {
      await connection.js.publish(subject, '{}');
      await connection.jsm.consumers.add(stream, { durable_name: 'one', ack_policy: 'explicit' });
      const consumer = await connection.js.consumers.get(stream, 'one');
      const message = await consumer.next();
      message?.term('as its reader likes');
    };
    await settle('PUBLIC', 'pub.org_1.session.ses_1.activated');
    await settle('EVENTS', 'evt.org_1.session.ses_1.activated');
    const stored = async () =>
      Object.keys(
        (await connection.jsm.streams.info('ADVISORY', { subjects_filter: '>' })).state.subjects ??
          {},
      );
    // The server tells of them in order.
    await expect.poll(stored).toEqual(['$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.EVENTS.one']);
  });

  test.each([
    ['kept in memory', { storage: 'memory' as const }, /storage is "memory"/],
    ['whose events may be deleted one by one', {}, /deny_delete is false/],
    ['that can never be purged', { deny_delete: true, deny_purge: true }, /deny_purge is true/],
    ['that forgets', { deny_delete: true, max_msgs: 10 }, /max_msgs is 10/],
  ])('refuses an event store %s', async (_, config, reason) => {
    const subjects = ['evt.>', 'fleet.>'];
    await asOperator((jsm) => jsm.streams.add({ name: 'EVENTS', subjects, ...config }));
    await expect(connectJetStream({ url: nats.url })).rejects.toThrow(reason);
  });

  test('waits for a server that is still starting', async () => {
    await nats.kill();
    const connecting = connectJetStream({ url: nats.url });
    await nats.restart();
    await using connection = await connecting;
    expect(connection.isConnected()).toBe(true);
  });

  test('reports that the server is gone, and that it is back', async () => {
    const statuses: ConnectionStatus[] = [];
    await using connection = await connectJetStream({
      url: nats.url,
      onStatus: (status) => statuses.push(status),
    });
    await nats.kill();
    await expect.poll(() => connection.isConnected()).toBe(false);
    expect(await connection.whenConnected(20)).toBe(false);
    const back = connection.whenConnected(60_000);
    await nats.restart();
    expect(await back).toBe(true);
    expect(connection.isConnected()).toBe(true);
    expect(statuses).toEqual(['connected', 'disconnected', 'connected']);
  });
});

test('a server that rejects the password for a while is tried until it accepts', async () => {
  const withPassword = (password: string) =>
    `authorization { user: service, password: ${password} }`;
  await using nats = await startNats(withPassword('first'));
  const objections: unknown[] = [];
  await using connection = await connectJetStream({
    url: nats.url.replace('//', '//service:first@'),
    onObjection: (error) => objections.push(error),
  });
  await nats.reconfigure(withPassword('second'));
  const refusals = () => objections.filter((error) => /authorization/i.test(String(error))).length;
  await expect.poll(refusals).toBeGreaterThan(2);
  await nats.reconfigure(withPassword('first'));
  await expect.poll(() => connection.isConnected()).toBe(true);
  expect((await connection.jsm.streams.info('EVENTS')).config.name).toBe('EVENTS');
});
