import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamObjectStore } from '#src/kernel/objects/jetstream/jetstream-object-store.ts';
import { createS3ObjectStore } from '#src/kernel/objects/s3/s3-object-store.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { ByteRange, ObjectStore } from '#src/kernel/objects/object-store.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { s3Server, startS3 } from '#test/support/servers/real-s3.ts';
import { startNats } from '#test/support/servers/real-nats.ts';

type Opened = AsyncDisposable & { objects: ObjectStore };
const adapters: { adapter: string; open: () => Promise<Opened> }[] = [
  {
    adapter: 'memory',
    open: async () => ({ objects: createMemoryObjectStore(), async [Symbol.asyncDispose]() {} }),
  },
  { adapter: 'JetStream', open: openOnNats },
];
const program = s3Server();
if (program !== null) adapters.push({ adapter: 'S3', open: () => openOnS3(program) });

async function openOnS3(path: string): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startS3(path));
  const objects = stack.use(createS3ObjectStore({ ...server.options, prefix: 'of/a/test/' }));
  const parts = stack.move();
  return { objects, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

async function openOnNats(): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startNats());
  const connection = stack.use(await connectJetStream({ url: server.url }));
  const objects = createJetStreamObjectStore(connection);
  const parts = stack.move();
  return { objects, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

const KIB = 1024;

/** No multiple of a chunk or a piece, so that a wrong range is noticed. */
const pattern = randomBytes(65_521);

function bytesOf(length: number, salt = 0): Buffer {
  return Buffer.alloc(length, pattern.subarray(salt));
}

async function* pieces(data: Buffer, size = 100_000) {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex');

describe.each(adapters)('objects in $adapter', ({ open }) => {
  let opened: Opened;
  let objects: ObjectStore;
  /** A prefix of its own for each test. */
  const own = () => `files/${freshId('acme')}/${freshId('ses')}/`;
  beforeAll(async () => {
    opened = await open();
    ({ objects } = opened);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  async function read(key: string, range?: ByteRange): Promise<Buffer | null> {
    const found = await objects.get(key, range);
    return found === null ? null : Buffer.concat(await Array.fromAsync(found.body));
  }
  const keys = async (prefix: string) =>
    (await Array.fromAsync(objects.list(prefix))).map(({ key }) => key);

  test.each([0, 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 8 * KIB * KIB, 9_000_000])(
    'of %i bytes are read as they were stored',
    async (length) => {
      const key = `${own()}a`;
      const data = bytesOf(length);
      const begin = Date.now();
      const stored = await objects.put(key, pieces(data));
      expect(stored).toMatchObject({ key, bytes: length, sha256: sha256(data) });
      expect(stored.storedAt).toBeGreaterThanOrEqual(begin);
      expect(stored.storedAt).toBeLessThanOrEqual(Date.now());
      expect(await objects.head(key)).toEqual(stored);
      const found = await objects.get(key);
      expect(found?.object).toEqual(stored);
      expect((await read(key))?.equals(data)).toBe(true);
    },
  );

  test('are read in ranges, which end with the object', async () => {
    const key = `${own()}a`;
    const data = bytesOf(1_000_000);
    await objects.put(key, pieces(data));
    for (const [start, end] of [
      [0, 0],
      [0, 256 * KIB - 1],
      [256 * KIB - 1, 256 * KIB],
      [256 * KIB, 700_000],
      [999_999, 999_999],
      [500_000, 5_000_000],
    ] as const)
      expect((await read(key, { start, end }))?.equals(data.subarray(start, end + 1))).toBe(true);
  });

  test('are refused ranges that are none of theirs', async () => {
    const key = `${own()}a`;
    await objects.put(key, pieces(bytesOf(10)));
    for (const [start, end] of [
      [10, 12],
      [-1, 2],
      [3, 2],
      [0.5, 2],
      [0, Infinity],
    ] as const)
      await expect(objects.get(key, { start, end })).rejects.toThrow(RangeError);
    expect(await objects.get(`${own()}missing`, { start: 0, end: 1 })).toBeNull();
  });

  test('that are missing are null, and removed without an error', async () => {
    const key = `${own()}missing`;
    expect(await objects.head(key)).toBeNull();
    expect(await objects.get(key)).toBeNull();
    await objects.remove(key);
    expect(await objects.removeAll(own())).toBe(0);
    expect(await keys(own())).toEqual([]);
  });

  test('are replaced as a whole', async () => {
    const key = `${own()}a`;
    const [former, latter] = [bytesOf(900_000), bytesOf(300_000, 7)];
    await objects.put(key, pieces(former));
    const { promise: half, resolve: isHalf } = Promise.withResolvers<void>();
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const putting = objects.put(
      key,
      (async function* () {
        yield latter.subarray(0, 290_000);
        isHalf();
        await goOn;
        yield latter.subarray(290_000);
      })(),
    );
    await half;
    expect((await read(key))?.equals(former)).toBe(true);
    resolve();
    const stored = await putting;
    expect((await read(key))?.equals(latter)).toBe(true);
    expect(await objects.head(key)).toEqual(stored);
  });

  test('that many put at once are one of them', async () => {
    const key = `${own()}a`;
    const all = Array.from({ length: 5 }, (_, at) => bytesOf(300_000 + at, at));
    await Promise.all(all.map((data) => objects.put(key, pieces(data))));
    const found = await read(key);
    expect(all.filter((data) => found?.equals(data))).toHaveLength(1);
    const head = await objects.head(key);
    expect(head?.sha256).toBe(sha256(found ?? Buffer.alloc(0)));
  });

  test('are as before if the source fails, or the put is given up', async () => {
    const key = `${own()}a`;
    const data = bytesOf(10);
    await objects.put(key, pieces(data));
    async function* failing() {
      yield bytesOf(600_000);
      throw new Error('the source failed');
    }
    await expect(objects.put(key, failing())).rejects.toThrow('the source failed');
    const stop = new AbortController();
    const { promise: never } = Promise.withResolvers<void>();
    async function* endless() {
      yield bytesOf(600_000);
      setImmediate(() => stop.abort(new Error('given up')));
      await never;
    }
    const { signal } = stop;
    await expect(objects.put(key, endless(), { signal })).rejects.toThrow('given up');
    await expect(objects.put(key, pieces(data), { signal })).rejects.toThrow('given up');
    expect((await read(key))?.equals(data)).toBe(true);
  });

  test('are read no further than they are pulled, until the signal aborts', async () => {
    const key = `${own()}a`;
    const data = bytesOf(2_000_000);
    await objects.put(key, pieces(data));
    const stop = new AbortController();
    const found = await objects.get(key, undefined, { signal: stop.signal });
    const body = found?.body[Symbol.asyncIterator]();
    const first = await body?.next();
    expect(first?.value?.[0]).toBe(data[0]);
    stop.abort(new Error('enough'));
    await expect(body?.next()).rejects.toThrow('enough');
    // A reader that leaves needs no signal.
    for await (const piece of (await objects.get(key))?.body ?? []) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
  });

  test('are listed by prefix in order of their keys', async () => {
    const prefix = own();
    const names = ['b/2', 'a', 'b/10', 'b-', 'c/1/2', 'd'];
    for (const name of names) await objects.put(prefix + name, pieces(bytesOf(5)));
    await objects.put(`${own()}other`, pieces(bytesOf(5)));
    const wanted = names.map((name) => prefix + name).toSorted();
    expect(await keys(prefix)).toEqual(wanted);
    expect(await keys(`${prefix}b/`)).toEqual([`${prefix}b/10`, `${prefix}b/2`]);
    const [kind, organization] = prefix.split('/');
    expect(await keys(`${kind}/${organization}/`)).toEqual(wanted);
    expect(await keys(`${kind}/`)).toEqual(expect.arrayContaining(wanted));
    const [one] = await Array.fromAsync(objects.list(prefix));
    expect(one).toEqual(await objects.head(wanted[0] ?? ''));
  });

  test('are removed one by one, or all under a prefix and no other', async () => {
    const prefix = own();
    const names = ['a', 'c', 'b/1', 'b/2', 'b/3/x', 'bb/1'];
    for (const name of names) await objects.put(prefix + name, pieces(bytesOf(300_000)));
    await objects.remove(`${prefix}a`);
    expect(await objects.removeAll(`${prefix}b/`)).toBe(3);
    expect(await keys(prefix)).toEqual([`${prefix}bb/1`, `${prefix}c`]);
    expect((await read(`${prefix}c`))?.length).toBe(300_000);
    await objects.put(`${prefix}a`, pieces(bytesOf(3)));
    expect((await read(`${prefix}a`))?.length).toBe(3);
  });

  test.each([
    '',
    'files',
    'files/',
    'files//a',
    '/files/a',
    'files/a.b',
    'files/*/a',
    'files/acme/>',
    'files/acme/a b',
    'files/acme/ä',
    `files/acme/${'a'.repeat(201)}`,
    'files/acme/1/2/3/4/5',
  ])('refuse the key %j', async (key) => {
    await expect(objects.put(key, pieces(bytesOf(1)))).rejects.toThrow(RangeError);
    await expect(objects.get(key)).rejects.toThrow(RangeError);
    await expect(objects.head(key)).rejects.toThrow(RangeError);
    await expect(objects.remove(key)).rejects.toThrow(RangeError);
  });

  test.each(['', '/', 'files', 'files/a', 'files/*/', 'files/./', 'a/b/c/d/e/f/'])(
    'refuse the prefix %j',
    async (prefix) => {
      await expect(Array.fromAsync(objects.list(prefix))).rejects.toThrow(RangeError);
      await expect(objects.removeAll(prefix)).rejects.toThrow(RangeError);
    },
  );
});
