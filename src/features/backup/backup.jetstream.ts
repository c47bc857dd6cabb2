import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConsumerConfig, JetStreamManager } from '@nats-io/jetstream';
import { OBJECTS_STREAM } from '#events/object-subjects.ts';
import { EVENTS_STREAM } from '#events/subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { examineStreams } from '#src/kernel/event-store/jetstream/streams.ts';
import { CHUNK_BYTES, restoreSnapshot, takeSnapshot } from './snapshot.jetstream.ts';
import {
  BadBackup,
  readManifest,
  writeManifest,
  type ConsumerBackup,
  type Manifest,
  type StreamBackup,
} from './manifest.ts';

/**
 * Writes the streams of the event store to a folder while the service runs. The positions of the
 * consumers are read first; the stream EVENTS is written after those that refer to its events, and
 * OBJECTS after EVENTS, which refers to objects: what one refers to is in the other. Work that was
 * done during the backup is repeated after a restore; all consumers are idempotent.
 * @throws BadBackup if the folder is not empty; Error if a snapshot fails
 */
export async function takeBackup(
  connection: JetStreamConnection,
  folder: string,
): Promise<Manifest> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await readdir(folder)).length > 0)
    throw new BadBackup(`${folder} is not empty: a backup needs an empty folder`);
  const { jsm, nc } = connection;
  const names = await streamsOf(jsm);
  const consumers = new Map<string, ConsumerBackup[]>();
  for (const name of names) consumers.set(name, await consumersOf(jsm, name));
  const manifest: Manifest = {
    format: 'bss-backup-1',
    takenAt: new Date().toISOString(),
    natsVersion: nc.info?.version ?? 'unknown',
    streams: [],
  };
  for (const name of names) {
    const taken = await writeSnapshot(connection, name, folder);
    manifest.streams.push({ ...taken, consumers: consumers.get(name) ?? [] });
  }
  await writeManifest(folder, manifest);
  return manifest;
}

/**
 * Creates the streams of a backup in an event store that has none of them.
 * @throws BadBackup before anything is changed: the backup is incomplete, or a stream exists
 */
export async function restoreBackup(
  connection: JetStreamConnection,
  folder: string,
): Promise<Manifest> {
  const { jsm, replicas } = connection;
  const manifest = await readManifest(folder);
  const there = await streamsOf(jsm);
  if (there.length > 0)
    throw new BadBackup(
      `the event store has streams already (${there.join(', ')}): a restore never overwrites. ` +
        'Stop the service and remove the data of NATS first; see deploy/runbook.md',
    );
  for (const stream of manifest.streams) {
    const { name, config, state, file } = stream;
    // No purge is forbidden in a new stream, either: streams of an early release forbid it.
    const changed = { num_replicas: replicas, deny_purge: false };
    const saved = { name, state, config: { ...config, ...changed } };
    const chunks = createReadStream(join(folder, file), { highWaterMark: CHUNK_BYTES });
    const restored = await restoreSnapshot(connection, saved, chunks);
    requireSame(stream, restored.state);
    for (const consumer of stream.consumers) await restoreConsumer(jsm, name, consumer);
  }
  return manifest;
}

/** Names of the existing streams in the order of a backup: EVENTS, and OBJECTS after it, last. */
async function streamsOf(jsm: JetStreamManager): Promise<string[]> {
  const standings = await examineStreams(jsm);
  const names = standings.filter(({ info }) => info !== null).map(({ name }) => name);
  const late = [EVENTS_STREAM, OBJECTS_STREAM];
  return names.toSorted((a, b) => late.indexOf(a) - late.indexOf(b));
}

async function consumersOf(jsm: JetStreamManager, stream: string): Promise<ConsumerBackup[]> {
  const found: ConsumerBackup[] = [];
  for await (const { config, ack_floor: done } of jsm.consumers.list(stream))
    if (config.durable_name !== undefined)
      found.push({ config: { ...config }, doneUpTo: done.stream_seq });
  return found;
}

async function writeSnapshot(
  connection: JetStreamConnection,
  name: string,
  folder: string,
): Promise<Omit<StreamBackup, 'consumers'>> {
  const file = `${name}.snapshot`;
  const hash = createHash('sha256');
  let bytes = 0;
  await using output = await open(join(folder, file), 'wx', 0o600);
  const { config, state } = await takeSnapshot(connection, name, async (chunk) => {
    hash.update(chunk);
    bytes += chunk.length;
    await output.write(chunk);
  });
  await output.sync();
  const known = state as StreamBackup['state'];
  return { name, config, state: known, file, bytes, sha256: hash.digest('hex') };
}

const SAME = ['messages', 'first_seq', 'last_seq'] as const;

function requireSame({ name, state }: StreamBackup, restored: Record<string, unknown>): void {
  // The first sequence of an empty stream has no meaning.
  const facts = state.messages === 0 ? (['messages', 'last_seq'] as const) : SAME;
  for (const key of facts)
    if (restored[key] !== state[key])
      throw new Error(`${name}: ${key} is ${String(restored[key])}; expected ${state[key]}`);
}

/** Creates a consumer with the settings of the backup; it continues after its position there. */
async function restoreConsumer(
  jsm: JetStreamManager,
  stream: string,
  { config, doneUpTo }: ConsumerBackup,
): Promise<void> {
  const { num_replicas: _, ...settings } = config as Partial<ConsumerConfig>;
  await jsm.consumers.add(stream, {
    ...settings,
    deliver_policy: 'by_start_sequence',
    opt_start_seq: doneUpTo + 1,
  });
}
