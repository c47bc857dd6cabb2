import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { CopyObjectCommand, DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { inChunks, upTo } from '../body.ts';
import { OBJECT_BYTES_MAX, type StoredObject } from '../object-store.ts';
import { newPutId } from '../put-id.ts';
import { explained, UNFINISHED, type ObjectBucket, type ObjectFacts } from './bucket.ts';

const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 2;
/** The parts that are sent, the next one, and the one that fills. */
export const PUT_BYTES = (PARTS_AT_ONCE + 2) * PART_BYTES;

type Put = { key: string; source: AsyncIterable<Uint8Array>; signal?: AbortSignal | undefined };

/** A small object in one request, a large one in parts. */
export async function putObject(
  bucket: ObjectBucket,
  { key, source, signal }: Put,
  storedAt: number,
): Promise<StoredObject> {
  const measured = measure(upTo(source, OBJECT_BYTES_MAX, signal));
  const facts = () => ({ sha256: measured.sha256(), 'stored-at': String(storedAt) });
  try {
    const next = await measured.body.next();
    const first = next.done === true ? Buffer.alloc(0) : next.value;
    if (first.length < PART_BYTES) {
      const put = { ...bucket.at(key), Body: first, Metadata: facts() };
      const options = signal === undefined ? {} : { abortSignal: signal };
      await bucket.client.send(new PutObjectCommand(put), options);
    } else {
      const body = withFirst(first, measured.body);
      await putLarge(bucket, { key, body, facts, storedAt, signal });
    }
  } catch (error) {
    measured.throwFailure();
    signal?.throwIfAborted();
    throw explained(error);
  }
  return { key, bytes: measured.bytes(), sha256: measured.sha256(), storedAt };
}

type LargePut = {
  key: string;
  body: AsyncIterable<Buffer>;
  facts: () => ObjectFacts;
  storedAt: number;
  signal: AbortSignal | undefined;
};

/**
 * Stores the body beside the objects, then copies it to its key, whole and described. What a put
 * that is given up leaves is removed with the leftovers.
 */
async function putLarge({ client, Bucket, at }: ObjectBucket, large: LargePut): Promise<void> {
  const place = at(UNFINISHED + newPutId(large.storedAt));
  const parts = { partSize: PART_BYTES, queueSize: PARTS_AT_ONCE, leavePartsOnError: false };
  const Body = Readable.from(large.body, { objectMode: false });
  const upload = new Upload({ client, params: { ...place, Body }, ...parts });
  const { signal } = large;
  const giveUp = () => void upload.abort();
  signal?.addEventListener('abort', giveUp, { once: true });
  await upload.done().finally(() => signal?.removeEventListener('abort', giveUp));
  try {
    const CopySource = [Bucket, ...place.Key.split('/')].map(encodeURIComponent).join('/');
    const copy = { ...at(large.key), CopySource, Metadata: large.facts() };
    const options = signal === undefined ? {} : { abortSignal: signal };
    await client.send(new CopyObjectCommand({ ...copy, MetadataDirective: 'REPLACE' }), options);
  } finally {
    // If that fails, it is removed with the leftovers.
    await client.send(new DeleteObjectCommand(place)).catch(() => undefined);
  }
}

/** The source in chunks of a part, with what is known of it once it has ended, or failed. */
function measure(source: AsyncIterable<Uint8Array>) {
  const hash = createHash('sha256');
  let bytes = 0;
  let sha256 = '';
  const failures: unknown[] = [];
  async function* body(): AsyncGenerator<Buffer, void, void> {
    try {
      for await (const chunk of inChunks(source, PART_BYTES)) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    } catch (error) {
      failures.push(error);
      throw error;
    }
  }
  return {
    body: body(),
    bytes: () => bytes,
    sha256: () => (sha256 ||= hash.digest('hex')),
    throwFailure() {
      if (failures.length > 0) throw failures[0];
    },
  };
}

async function* withFirst(first: Buffer, rest: AsyncIterable<Buffer>) {
  yield first;
  yield* rest;
}
