/** The suite over a real S3 server, too, which `npm run test:nightly` builds. */
import './object-store.test.ts';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createS3ObjectStore } from '#src/kernel/objects/s3/s3-object-store.ts';
import { LEFTOVER_MS, ObjectStoreUnavailable } from '#src/kernel/objects/object-store.ts';
import { createS3Client } from '#src/kernel/s3/s3-client.ts';
import { s3Server, startS3 } from '#test/support/servers/real-s3.ts';
import { eventually } from '#test/support/service/service.ts';

const program = s3Server();
const KEY = 'files/acme/ses_1/a';

async function* zeros(mebibytes: number) {
  for (let left = mebibytes; left > 0; left -= 1) yield Buffer.alloc(1024 ** 2);
}

if (program !== null) describe('objects in S3', () => testOn(program));

function testOn(path: string): void {
  test('leave nothing beside them, and leftovers of killed puts are removed', async () => {
    await using server = await startS3(path);
    await using objects = createS3ObjectStore(server.options);
    await objects.put(KEY, zeros(20));
    async function* failing() {
      yield* zeros(20);
      throw new Error('cut off');
    }
    await expect(objects.put('files/acme/ses_1/b', failing())).rejects.toThrow('cut off');
    const unfinished = await readdir(`${server.folder}/.unfinished`).catch(() => []);
    expect(unfinished).toEqual([]);
    await using killed = createS3ObjectStore(server.options, { now: () => 1 });
    const { promise: never } = Promise.withResolvers<void>();
    const stop = new AbortController();
    const { promise: isHalf, resolve } = Promise.withResolvers<void>();
    async function* stuck() {
      yield* zeros(20);
      resolve();
      await never;
    }
    const putting = killed.put(KEY, stuck(), { signal: stop.signal });
    await isHalf;
    const client = createS3Client(server.options);
    onTestFinished(() => client.destroy());
    const uploads = async () => {
      const listed = new ListMultipartUploadsCommand({ Bucket: server.options.bucket });
      return (await client.send(listed)).Uploads?.length ?? 0;
    };
    await eventually(async () => (await uploads()) === 1, 'its upload has begun');
    stop.abort(new Error('given up'));
    await expect(putting).rejects.toThrow('given up');
    await eventually(async () => (await uploads()) === 0, 'its upload is aborted');
    await mkdir(`${server.folder}/.unfinished`, { recursive: true });
    await writeFile(`${server.folder}/.unfinished/1-0123456789ab`, 'left');
    expect(await objects.removeLeftovers()).toBe(1);
    await mkdir(`${server.folder}/.unfinished`, { recursive: true });
    await writeFile(`${server.folder}/.unfinished/1-0123456789ab`, 'left');
    await using later = createS3ObjectStore(server.options, { now: () => LEFTOVER_MS + 100 });
    expect(await later.removeLeftovers()).toBe(1);
    expect(await readdir(`${server.folder}/.unfinished`).catch(() => [])).toEqual([]);
    expect((await objects.head(KEY))?.bytes).toBe(20 * 1024 ** 2);
  });

  test('say that the bucket is missing, the key is wrong or the server is away', async () => {
    const server = await startS3(path);
    const { options } = server;
    const credentials = { accessKeyId: 'tester', secretAccessKey: 'wrong' };
    for (const wrong of [
      { ...options, bucket: 'none' },
      { ...options, credentials },
    ]) {
      await using objects = createS3ObjectStore(wrong);
      await expect(objects.put(KEY, zeros(1))).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.put(KEY, zeros(20))).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.get(KEY)).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.head(KEY)).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.remove(KEY)).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.removeAll('files/')).rejects.toThrow(ObjectStoreUnavailable);
      await expect(objects.removeLeftovers()).rejects.toThrow(ObjectStoreUnavailable);
    }
    await server[Symbol.asyncDispose]();
    await using objects = createS3ObjectStore(options);
    await expect(objects.head(KEY)).rejects.toThrow(ObjectStoreUnavailable);
    // Before any request.
    await expect(objects.head('files')).rejects.toThrow(RangeError);
  });
}
