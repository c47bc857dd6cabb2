import { afterAll, beforeAll, expect, test } from 'vitest';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { Finding } from '#src/apps/doctor/finding.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import {
  connectJetStream,
  type ConnectOptions,
} from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { raiseReplicas } from '#src/kernel/event-store/jetstream/replicas.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { aCause, accessed, aSession, change, requested } from '#test/support/events.fixture.ts';
import { startNatsCluster, type NatsCluster } from '#test/support/servers/nats-cluster.ts';
import type { NatsUser } from '#test/support/servers/nats-roles.ts';
import { eventually } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';
import { bssWith } from '#test/support/clients/command-line.ts';

/** The event store on a cluster of three real servers, configured as in deploy/. */

/** For a cluster to elect a leader on a busy machine. */
const PATIENCE_MS = 60_000;
/** Appends of each writer after which the leader is killed: CI kills the first one only. */
const KILLS = soakOr([25, 50], [25]);

let cluster: NatsCluster;
beforeAll(async () => {
  cluster = await startNatsCluster();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

function connectAs(
  user: NatsUser,
  options: Omit<ConnectOptions, 'url'> = {},
): Promise<JetStreamConnection> {
  const tls = { caFile: cluster.caFile };
  // Three servers that start at once agree on a leader first.
  return connectJetStream({ readyMs: PATIENCE_MS, ...options, url: cluster.urlOf(user), tls });
}

/** Runs `bss doctor --json`. @returns its findings by check */
async function examine(...args: string[]): Promise<(check: string) => Finding[]> {
  const env = {
    NATS_URL: cluster.urlOf('operator'),
    NATS_CA_FILE: cluster.caFile,
    REDIS_URL: 'redis://127.0.0.1:1',
    MASTER_KEY: 'tGm4Zk0vQe8RzjU1c7LwXb5HfAy2NpDs9KiJ',
  };
  const { stdout, stderr } = await bssWith(env, 'doctor', '--json', ...args);
  if (stdout === '') throw new Error(`the doctor says nothing: ${stderr}`);
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return (check) => findings.filter((finding) => finding.check === check);
}

/** Copies of each stream. */
async function replicasOf(connection: JetStreamConnection): Promise<Record<string, number>> {
  return requestWithRetry(connection, PATIENCE_MS, async () => {
    const all: Record<string, number> = {};
    for await (const { config } of connection.jsm.streams.list())
      all[config.name] = config.num_replicas;
    return all;
  });
}

async function clusterOf(connection: JetStreamConnection, name: string) {
  const info = await requestWithRetry(connection, PATIENCE_MS, () =>
    connection.jsm.streams.info(name),
  );
  return info.cluster ?? {};
}

/** Whether each copy of the stream has all that its leader has. */
async function isWhole(connection: JetStreamConnection, name: string): Promise<boolean> {
  const { leader, replicas = [] } = await clusterOf(connection, name);
  return leader !== undefined && replicas.length === 2 && replicas.every(({ current }) => current);
}

test('streams are created with three replicas, and `bss doctor --fix` raises those that have one', async () => {
  // An operator once configured one replica.
  await using early = await connectAs('api', { replicas: 1 });
  // Later processes use the size of the cluster.
  await using api = await connectAs('api');
  await using provisioner = await connectAs('provisioner', {
    makesStreams: false,
    awaitsStreams: true,
  });
  const leases = () => createJetStreamLeases(provisioner).catch(() => null);
  await eventually(leases, 'there is room for leases', PATIENCE_MS);
  await using operator = await connectAs('operator', { makesStreams: false });
  expect(early.replicas).toBe(1);
  expect(await replicasOf(operator)).toMatchObject({
    EVENTS: 1,
    TIMERS: 1,
    KV_leases: 3,
  });

  const before = await examine();
  expect(before('log.replicas')).toMatchObject([
    {
      level: 'bad',
      what: expect.stringMatching(/^too few replicas in a cluster of 3: EVENTS 1, /),
    },
  ]);
  const after = await examine('--fix');
  expect(after('log.replicas')).toMatchObject([{ level: 'ok', what: '3 replicas of each stream' }]);
  expect(after('log.sync')).toMatchObject([{ level: 'ok' }]);
  expect(new Set(Object.values(await replicasOf(operator)))).toEqual(new Set([3]));
  expect(await raiseReplicas(operator)).toEqual([]);
  await eventually(() => isWhole(operator, EVENTS_STREAM), 'its copies are whole', 60_000);

  // The api user may not change streams.
  await expect(raiseReplicas(api, 5)).rejects.toThrow(/Permissions Violation/);
});

test('no acknowledged append is lost or doubled when the leader of the stream is killed', async () => {
  await using connection = await connectAs('api');
  await using operator = await connectAs('operator', { makesStreams: false });
  const eventStore = createJetStreamEventStore(connection);
  const writers = Array.from({ length: 4 }, () => writeOn(eventStore));
  const until = (count: number) =>
    eventually(
      () => writers.every(({ acknowledged }) => acknowledged.length >= count),
      `${count}`,
      90_000,
    );

  for (const count of KILLS) {
    await until(count);
    const leading = async () => {
      const { leader = '' } = await clusterOf(operator, EVENTS_STREAM);
      return cluster.servers.get(leader) ?? null;
    };
    const server = await eventually(leading, 'the stream has a leader', PATIENCE_MS);
    await server.kill();
    // Two of three go on without it.
    await until(count + 10);
    await server.restart();
    const whole = () => isWhole(operator, EVENTS_STREAM);
    await eventually(whole, 'the killed one has caught up', 2 * PATIENCE_MS);
  }
  for (const writer of writers) await writer.stop();

  for (const { session, acknowledged } of writers) {
    const stored: string[] = [];
    for await (const { metadata } of eventStore.history(session)) stored.push(metadata.commandId);
    expect(new Set(stored).size).toBe(stored.length);
    expect(stored).toEqual(expect.arrayContaining(acknowledged));
  }
});

/** Appends to a session of its own, one event after the other, until it is stopped. */
function writeOn(eventStore: EventStore) {
  const session = aSession();
  const acknowledged: string[] = [];
  const stopping = new AbortController();

  async function write(): Promise<void> {
    const metadata = aCause();
    for (;;) {
      const last = await eventStore.readLast(session, { fromLeader: true });
      const event = last === null ? requested(session, metadata) : accessed(session, 1, metadata);
      const { outcome } = await eventStore.append([change(last?.sequence ?? 0, event)]);
      if (outcome === 'conflict') continue;
      acknowledged.push(metadata.commandId);
      return;
    }
  }
  async function run(): Promise<void> {
    while (!stopping.signal.aborted)
      // An append that was not acknowledged may or may not be stored: it is not counted.
      await write().catch((error: unknown) => {
        if (!(error instanceof Unavailable)) throw error;
      });
  }
  const running = run();
  running.catch(() => undefined); // rethrown by stop()
  return {
    session,
    acknowledged,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
