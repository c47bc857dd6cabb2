import { createHash } from 'node:crypto';
import { chunksFilter, chunkSubject, headSubject } from '#events/object-subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { isWrongLastSequence } from '#src/kernel/event-store/jetstream/request.ts';
import { inChunks, upTo } from '../body.ts';
import {
  OBJECT_BYTES_MAX,
  ObjectStoreUnavailable,
  PUT_MS_MAX,
  PUT_SILENT_MS,
  type PutOptions,
  type StoredObject,
} from '../object-store.ts';
import { newPutId } from '../put-id.ts';
import type { Head, ObjectRequests } from './requests.ts';

/** Large enough that the disk is asked seldom, and a quarter of what NATS takes by default. */
export const CHUNK_BYTES = 256 * 1024;
/** What a message may need beside its data. */
const MESSAGE_BYTES = 8 * 1024;
/** Chunks that are sent and not yet acknowledged: 2 MiB for each put. */
const IN_FLIGHT_MAX = 8;
/** The chunks in flight, the one that fills, and the one that is sent next. */
export const PUT_BYTES = (IN_FLIGHT_MAX + 2) * CHUNK_BYTES;
/** Puts of one key that meet each other. */
const CONFLICTS_MAX = 20;

type PutParts = {
  connection: JetStreamConnection;
  requests: ObjectRequests;
  now: () => number;
};

/**
 * Stores the chunks, then the head that names them, then removes the chunks of the object that was
 * replaced. A put that is killed has changed nothing that a reader sees.
 */
export async function putObject(
  { connection, requests, now }: PutParts,
  key: string,
  body: AsyncIterable<Uint8Array>,
  { signal, freed }: PutOptions = {},
): Promise<StoredObject> {
  const begunAt = now();
  const put = newPutId(begunAt);
  const payloadMax = connection.nc.info?.max_payload ?? CHUNK_BYTES + MESSAGE_BYTES;
  const chunkBytes = Math.min(CHUNK_BYTES, payloadMax - MESSAGE_BYTES);
  const hash = createHash('sha256');
  let bytes = 0;
  let chunks = 0;
  let storedAt = begunAt;
  const inFlight: Promise<unknown>[] = [];
  const forget = (id: string) =>
    requests.purge(chunksFilter(key, id)).catch((error: unknown) => {
      connection.report(error, 'chunks of an object are left for the sweep');
    });
  /** Each chunk renews it: what has had none for `PUT_LEASE_MS` is removed by the sweep. */
  function requireLease(): void {
    const at = now();
    if (at - begunAt > PUT_MS_MAX || at - storedAt > PUT_SILENT_MS)
      throw new ObjectStoreUnavailable(
        new Error(`a put took longer than ${PUT_MS_MAX} ms, or ${PUT_SILENT_MS} ms for a chunk`),
      );
    storedAt = at;
  }
  try {
    for await (const chunk of inChunks(upTo(body, OBJECT_BYTES_MAX, signal), chunkBytes)) {
      hash.update(chunk);
      bytes += chunk.length;
      requireLease();
      const stored = requests.store(chunkSubject(key, put, chunks), chunk);
      stored.catch(() => undefined); // it is awaited, unless another one fails before
      chunks += 1;
      inFlight.push(stored);
      if (inFlight.length >= IN_FLIGHT_MAX) await inFlight.shift();
    }
    await Promise.all(inFlight);
    requireLease();
  } catch (error) {
    // None of them arrives later.
    await Promise.allSettled(inFlight);
    if (chunks > 0) await forget(put);
    throw error;
  }
  const sha256 = hash.digest('hex');
  const head: Head = { put, chunks, chunkBytes, bytes, sha256, storedAt: now() };
  const former = await commit(requests, key, head);
  if (former !== null && former.chunks > 0) await forget(former.put);
  if (former !== null) freed?.(former.bytes);
  return { key, bytes, sha256, storedAt: head.storedAt };
}

/**
 * Writes the head, if no other put has since the former one was read: each removes the chunks of
 * exactly the one that it replaced. If the outcome is unknown, the chunks stay until the sweep.
 * @returns the head that was replaced; null: there was none
 */
async function commit(requests: ObjectRequests, key: string, head: Head): Promise<Head | null> {
  let former: Head | null = null;
  for (let conflicts = 0; ; conflicts += 1) {
    const known = await requests.head(key);
    // An earlier try was stored, only its answer was lost.
    if (known?.put === head.put) return former;
    former = known;
    try {
      await requests.store(headSubject(key), JSON.stringify(head), known?.sequence ?? 0);
      return former;
    } catch (error) {
      if (!isWrongLastSequence(error)) throw error;
      if (conflicts >= CONFLICTS_MAX) throw new ObjectStoreUnavailable(error);
    }
  }
}
