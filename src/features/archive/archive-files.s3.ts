import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { createS3Client, statusOf, type S3Options } from '#src/kernel/s3/s3-client.ts';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';

/** S3 takes at most 10,000 parts: files up to 160 GB. */
const PART_BYTES = 16 * 1024 * 1024;
const PARTS_AT_ONCE = 2;
/** The conditional write met another one of the same name; the next try sees its outcome. */
const CONFLICTS_MAX = 5;

/** Keeps files as objects of a bucket, which must exist and know conditional writes. */
export function createS3Files(options: S3Options): ArchiveFiles & Disposable {
  const { bucket: Bucket, prefix = '' } = options;
  const client = createS3Client(options);
  const object = (name: string) => ({ Bucket, Key: prefix + name });

  async function list(): Promise<string[]> {
    const names: string[] = [];
    let next: string | undefined;
    do {
      const page = { Bucket, Prefix: prefix, ContinuationToken: next };
      const found = await client.send(new ListObjectsV2Command(page));
      for (const { Key } of found.Contents ?? []) if (Key) names.push(Key.slice(prefix.length));
      next = found.NextContinuationToken;
    } while (next !== undefined);
    // Names in a folder below are of somebody else.
    return names.filter((name) => name !== '' && !name.includes('/')).toSorted();
  }
  async function get(name: string, range?: { offset: number; length: number }) {
    const Range = range && `bytes=${range.offset}-${range.offset + range.length - 1}`;
    const { Body } = await client.send(new GetObjectCommand({ ...object(name), Range }));
    if (Body === undefined) throw new Error(`S3 answered without a body for ${name}`);
    return Body;
  }
  async function isStored(name: string, data: Buffer): Promise<boolean> {
    return Buffer.from(await (await get(name)).transformToByteArray()).equals(data);
  }
  return {
    list,
    async size(name) {
      const head = new HeadObjectCommand(object(name));
      return (await existing(name, client.send(head))).ContentLength ?? 0;
    },
    async read(name, range) {
      // An empty range cannot be written in HTTP.
      if (range?.length === 0) return Buffer.alloc(0);
      try {
        return Buffer.from(await (await get(name, range)).transformToByteArray());
      } catch (error) {
        // The range begins at or behind the end of the file.
        if (statusOf(error) === 416) return Buffer.alloc(0);
        throw missingOr(name, error);
      }
    },
    async *stream(name) {
      const body = await existing(name, get(name));
      yield* body as Readable;
    },
    async write(name, data) {
      if (Buffer.isBuffer(data) && data.length <= PART_BYTES) {
        await client.send(new PutObjectCommand({ ...object(name), Body: data }));
        return;
      }
      // An upload that fails is aborted, and no part of it is left.
      const Body = Buffer.isBuffer(data) ? data : Readable.from(data, { objectMode: false });
      const parts = { partSize: PART_BYTES, queueSize: PARTS_AT_ONCE, leavePartsOnError: false };
      await new Upload({ client, params: { ...object(name), Body }, ...parts }).done();
    },
    async writeNew(name, data) {
      const put = { ...object(name), Body: data, IfNoneMatch: '*' };
      for (let tries = 1; ; tries += 1)
        try {
          await client.send(new PutObjectCommand(put));
          return true;
        } catch (error) {
          if (statusOf(error) === 412) return wasRepeated(error) && (await isStored(name, data));
          if (statusOf(error) !== 409 || tries === CONFLICTS_MAX) throw error;
        }
    },
    async remove(name) {
      await client.send(new DeleteObjectCommand(object(name)));
    },
    [Symbol.dispose]: () => client.destroy(),
  };
}

/** Whether the client sent the request again: the first may have been done, its answer lost. */
function wasRepeated(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.$metadata.attempts ?? 1) > 1;
}

async function existing<T>(name: string, result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => {
    throw missingOr(name, error);
  });
}

function missingOr(name: string, error: unknown): unknown {
  return statusOf(error) === 404 ? new FileMissing(name, error) : error;
}
