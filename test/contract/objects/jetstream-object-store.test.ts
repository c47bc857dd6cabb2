import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALL_CHUNKS, chunkSubject, OBJECTS_STREAM } from '#events/object-subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import {
  ObjectChanged,
  ObjectStoreFull,
  ObjectStoreUnavailable,
  PUT_LEASE_MS,
  PUT_SILENT_MS,
} from '#src/kernel/objects/object-store.ts';
import { newPutId } from '#src/kernel/objects/put-id.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';

/** What is particular to objects in a stream: its messages, its size, its server. */

const MIB = 1024 ** 2;
let nats: RealNats;
let connection: JetStreamConnection;
beforeAll(async () => {
  nats = await startNats();
  connection = await connectJetStream({ url: nats.url, objectsMaxBytes: 32 * MIB });
});
afterAll(async () => {
  await connection[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

async function* zeros(bytes: number) {
  for (let left = bytes; left > 0; left -= MIB) yield Buffer.alloc(Math.min(left, MIB));
}
const own = () => `files/${freshId('acme')}/${freshId('ses')}`;

async function messages(filter = '>'): Promise<string[]> {
  const query = { subjects_filter: filter, deleted_details: false, offset: 0 };
  const { state } = await connection.jsm.streams.info(OBJECTS_STREAM, query);
  return Object.keys(state.subjects ?? {}).toSorted();
}

test('nothing is left of objects that were replaced, removed or never stored', async () => {
  const objects = createJetStreamObjectStore(connection);
  const key = own();
  await objects.put(key, zeros(5 * MIB));
  expect(await messages(ALL_CHUNKS)).toHaveLength(20);
  await objects.put(key, zeros(MIB));
  expect(await messages(ALL_CHUNKS)).toHaveLength(4);
  async function* failing() {
    yield* zeros(3 * MIB);
    throw new Error('cut off');
  }
  await expect(objects.put(own(), failing())).rejects.toThrow('cut off');
  expect(await messages(ALL_CHUNKS)).toHaveLength(4);
  await objects.remove(key);
  expect(await messages()).toEqual([]);
});

test('a reader of an object that is removed meanwhile gets an error, not an end', async () => {
  const objects = createJetStreamObjectStore(connection);
  const key = own();
  await objects.put(key, zeros(8 * MIB));
  const found = await objects.get(key);
  const reading = (async () => {
    for await (const _ of found?.body ?? []) await objects.remove(key);
  })();
  await expect(reading).rejects.toThrow(ObjectChanged);
});

test('a stream that is full refuses, and takes again what there is room for', async () => {
  const objects = createJetStreamObjectStore(connection);
  const key = own();
  await objects.put(key, zeros(20 * MIB));
  await expect(objects.put(own(), zeros(20 * MIB))).rejects.toThrow(ObjectStoreFull);
  expect((await objects.head(key))?.bytes).toBe(20 * MIB);
  await objects.put(own(), zeros(5 * MIB));
  expect(await objects.removeAll('files/')).toBe(2);
  expect(await messages()).toEqual([]);
});

test('what a killed put has left is removed once its lease is over', async () => {
  const begunAt = Date.now() - PUT_LEASE_MS - 60_000;
  const [abandoned, stored] = [own(), own()];
  const objects = createJetStreamObjectStore(connection);
  await objects.put(stored, zeros(MIB));
  await connection.js.publish(chunkSubject(abandoned, newPutId(begunAt), 0), 'a');
  await connection.js.publish(chunkSubject(stored, newPutId(begunAt), 0), 'a');
  // It began long ago, and has stored a chunk just now: it may go on.
  expect(await objects.removeLeftovers()).toBe(0);
  expect(await messages(ALL_CHUNKS)).toHaveLength(6);
  const later = createJetStreamObjectStore(connection, { leaseMs: 0 });
  expect(await later.removeLeftovers()).toBe(2);
  expect(await messages(ALL_CHUNKS)).toHaveLength(4);
  expect((await objects.head(stored))?.bytes).toBe(MIB);
  await objects.remove(stored);
});

test('a put that has stored nothing for too long fails, and leaves nothing', async () => {
  let at = Date.now();
  const objects = createJetStreamObjectStore(connection, { now: () => at });
  const key = own();
  async function* silent() {
    yield* zeros(MIB);
    at += PUT_SILENT_MS + 1;
    yield* zeros(MIB);
  }
  await expect(objects.put(key, silent())).rejects.toThrow(ObjectStoreUnavailable);
  expect([await objects.head(key), await messages(ALL_CHUNKS)]).toEqual([null, []]);
});

test('the size of the stream follows the configuration, as far as there is room', async () => {
  const sizeOf = async () => (await connection.jsm.streams.info(OBJECTS_STREAM)).config.max_bytes;
  const start = async (objectsMaxBytes?: number) => {
    const size = objectsMaxBytes === undefined ? {} : { objectsMaxBytes };
    await using _ = await connectJetStream({ url: nats.url, ...size });
  };
  expect(await sizeOf()).toBe(32 * MIB);
  await start(48 * MIB);
  expect(await sizeOf()).toBe(48 * MIB);
  const moreThanAnyDisk = 2 ** 52;
  for (const size of [undefined, moreThanAnyDisk]) {
    await start(size);
    expect(await sizeOf()).toBe(48 * MIB);
  }
  await connection.jsm.streams.delete(OBJECTS_STREAM);
  await start(moreThanAnyDisk);
  const fitted = await sizeOf();
  expect(fitted).toBeGreaterThan(0);
  expect(Math.log2(fitted) % 1).toBe(0);
});

test('survives a restart of the server while it stores and while it reads', async () => {
  const objects = createJetStreamObjectStore(connection);
  const key = own();
  async function* restarted() {
    yield* zeros(2 * MIB);
    await nats.restart();
    yield* zeros(2 * MIB);
  }
  const stored = await objects.put(key, restarted());
  expect(stored.bytes).toBe(4 * MIB);
  const found = await objects.get(key);
  let bytes = 0;
  for await (const piece of found?.body ?? []) {
    if (bytes === 0) await nats.restart();
    bytes += piece.length;
  }
  expect(bytes).toBe(4 * MIB);
});

test('says that it does not answer', async () => {
  await using second = await startNats();
  await using other = await connectJetStream({ url: second.url });
  const objects = createJetStreamObjectStore(other, { answerMs: 100 });
  await second.kill();
  await expect(objects.head(own())).rejects.toThrow(ObjectStoreUnavailable);
});
