import { DeleteObjectCommand, GetObjectCommand } from '@aws-sdk/client-s3';
import { statusOf, type S3Options } from '#src/kernel/s3/s3-client.ts';
import { untilAborted } from '../body.ts';
import { isKey, requireKey, requirePrefix, requireRange } from '../object-key.ts';
import { LEFTOVER_MS, type ObjectStore } from '../object-store.ts';
import { describeObject, explained, isMissing, openObjectBucket, raise } from './bucket.ts';
import { PUT_BYTES, putObject } from './put.ts';
import { removeLeftovers, removeObjects } from './remove.ts';

/** Objects that are described at once. */
const AT_ONCE = 8;

/** Keeps objects in a bucket, which must exist; their SHA-256 is in their metadata. */
export function createS3ObjectStore(
  options: S3Options,
  { now = Date.now }: { now?: () => number } = {},
): ObjectStore {
  const bucket = openObjectBucket(options);
  const { client, at } = bucket;
  return {
    putBytes: PUT_BYTES,
    async put(key, source, { signal, freed } = {}) {
      requireKey(key);
      const former = freed === undefined ? null : await bucket.head(key);
      const stored = await putObject(bucket, { key, source, signal }, now());
      if (former !== null) freed?.(former.bytes);
      return stored;
    },
    async get(key, range, { signal } = {}) {
      requireKey(key);
      requireRange(range);
      const Range = range && `bytes=${range.start}-${range.end}`;
      try {
        const found = await client.send(new GetObjectCommand({ ...at(key), Range }));
        const pieces = passed(found.Body as AsyncIterable<Uint8Array> | undefined);
        return { object: describeObject(key, found), body: untilAborted(pieces, signal) };
      } catch (error) {
        if (isMissing(error)) return null;
        if (statusOf(error) === 416) throw new RangeError(`no byte ${range?.start} of ${key}`);
        throw explained(error);
      }
    },
    async head(key) {
      requireKey(key);
      return bucket.head(key);
    },
    async *list(prefix) {
      requirePrefix(prefix);
      for await (const page of bucket.pages(prefix)) {
        const keys = page.map(({ key }) => key).filter(isKey);
        for (let from = 0; from < keys.length; from += AT_ONCE) {
          const some = await Promise.all(
            keys.slice(from, from + AT_ONCE).map((key) => bucket.head(key)),
          );
          yield* some.filter((object) => object !== null);
        }
      }
    },
    async remove(key, { freed } = {}) {
      requireKey(key);
      const former = freed === undefined ? null : await bucket.head(key);
      await client.send(new DeleteObjectCommand(at(key))).catch(raise);
      if (former !== null) freed?.(former.bytes);
    },
    async removeAll(prefix, options) {
      requirePrefix(prefix);
      return removeObjects(bucket, prefix, options);
    },
    async use() {
      return null;
    },
    removeLeftovers: () => removeLeftovers(bucket, now() - LEFTOVER_MS),
    async [Symbol.asyncDispose]() {
      client.destroy();
    },
  };
}

/** The answer's bytes. @throws ObjectStoreUnavailable if it breaks off */
async function* passed(body: AsyncIterable<Uint8Array> | undefined) {
  try {
    yield* body ?? [];
  } catch (error) {
    throw explained(error);
  }
}
