import {
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  S3ServiceException,
  type S3Client,
} from '@aws-sdk/client-s3';
import { createS3Client, statusOf, type S3Options } from '#src/kernel/s3/s3-client.ts';
import { ObjectStoreFull, ObjectStoreUnavailable, type StoredObject } from '../object-store.ts';

/** Puts that are not done; no key of an object has a dot. */
export const UNFINISHED = '.unfinished/';

/** The bucket of an object store and the requests that all of it share. */
export type ObjectBucket = ReturnType<typeof openObjectBucket>;

/** What a list says of an object. */
type Listed = { key: string; bytes: number };

/** What an object's headers say. */
type ObjectHeaders = {
  ContentLength?: number | undefined;
  ContentRange?: string | undefined;
  LastModified?: Date | undefined;
  Metadata?: Record<string, string> | undefined;
};

export function openObjectBucket(options: S3Options) {
  const client = createS3Client(options);
  const { bucket: Bucket, prefix: root = '' } = options;
  const at = (key: string) => ({ Bucket, Key: root + key });
  const requireBucket = createBucketCheck(client, Bucket);
  return {
    client,
    Bucket,
    root,
    at,
    /** Null: no such object. */
    async head(key: string): Promise<StoredObject | null> {
      try {
        return describeObject(key, await client.send(new HeadObjectCommand(at(key))));
      } catch (error) {
        if (statusOf(error) !== 404) throw explained(error);
        // The answer has no body, and so does not tell a missing object from a missing bucket.
        await requireBucket();
        return null;
      }
    },
    /** What is under the prefix in the order of its keys, in pages of 1,000. */
    async *pages(prefix: string): AsyncGenerator<Listed[], void, void> {
      let next: string | undefined;
      do {
        const page = { Bucket, Prefix: root + prefix, ContinuationToken: next };
        const found = await client.send(new ListObjectsV2Command(page)).catch(raise);
        yield (found.Contents ?? []).map(({ Key = root, Size: bytes = 0 }) => ({
          key: Key.slice(root.length),
          bytes,
        }));
        next = found.NextContinuationToken;
      } while (next !== undefined);
    },
  };
}

/** Asks whether the bucket is there, until it is. */
function createBucketCheck(client: S3Client, Bucket: string): () => Promise<void> {
  let isThere = false;
  return async () => {
    if (!isThere) await client.send(new HeadBucketCommand({ Bucket })).catch(raise);
    isThere = true;
  };
}

/** The metadata of an object. */
export type ObjectFacts = { sha256: string; 'stored-at': string };

export function describeObject(key: string, headers: ObjectHeaders): StoredObject {
  const { ContentLength = 0, ContentRange, LastModified, Metadata = {} } = headers;
  const whole = /\/(\d+)$/.exec(ContentRange ?? '')?.[1];
  const bytes = whole === undefined ? ContentLength : Number(whole);
  const storedAt = Number(Metadata['stored-at'] ?? LastModified?.getTime() ?? 0);
  return { key, bytes, sha256: Metadata['sha256'] ?? '', storedAt };
}

export function isMissing(error: unknown): boolean {
  return error instanceof S3ServiceException && error.name === 'NoSuchKey';
}

/** Throws the store's own error for one of the client. */
export function raise(error: unknown): never {
  throw explained(error);
}

/** The store's own error for one of the client. */
export function explained(error: unknown): Error {
  if (error instanceof ObjectStoreUnavailable || error instanceof RangeError) return error;
  const isFull = statusOf(error) === 507 || (error instanceof Error && /quota/i.test(error.name));
  return isFull ? new ObjectStoreFull(error) : new ObjectStoreUnavailable(error);
}
