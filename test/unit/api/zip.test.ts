import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { SessionFile } from '#src/kernel/domain/session/files.ts';
import { zipOf } from '#src/roles/api/files/zip.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';

/** A zip of files that cannot be read to their end. */

const SESSION = { organizationId: 'acme', id: 's1' };
const PIECE = Buffer.alloc(64 * 1024, 'x');
const createdAt = '2026-11-20T09:00:00.000Z';
const fileOf = (name: string, pieces: number): SessionFile => ({
  ...{ name, fileId: name, bytes: pieces * PIECE.length, sha256: '', origin: 'upload', createdAt },
});

/** Errors that would have ended the process. */
let thrown: unknown[];
beforeEach(() => {
  thrown = [];
  const others = process.rawListeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => void thrown.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other as () => void);
  });
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A store whose bodies are these; `open`: how many are read and not at their end. */
function storeOf(bodies: Record<string, () => AsyncGenerator<Buffer> | null>) {
  let open = 0;
  async function* counted(body: AsyncGenerator<Buffer>) {
    open += 1;
    try {
      yield* body;
    } finally {
      open -= 1;
    }
  }
  const get = async (key: string) => {
    const body = bodies[key.split('/').at(-1) ?? '']?.() ?? null;
    return body && { body: counted(body) };
  };
  return { objects: { get } as unknown as Pick<ObjectStore, 'get'>, open: () => open };
}

async function* pieces(count: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < count; at += 1) yield PIECE;
}
async function* breaking(): AsyncGenerator<Buffer> {
  yield PIECE;
  throw new Error('the object store does not answer');
}

test.each<[string, () => AsyncGenerator<Buffer> | null, string]>([
  ['was removed meanwhile', () => null, 'a file was removed while a zip was made'],
  ['breaks off', breaking, 'the object store does not answer'],
])('breaks off where a file %s, and ends nothing', async (_, second, why) => {
  const { objects } = storeOf({ a: () => pieces(2), b: second });
  const { body } = await zipOf(objects, SESSION, [fileOf('a', 2), fileOf('b', 2)]);
  await expect(Array.fromAsync(body)).rejects.toThrow(why);
  for (let turns = 0; turns < 10; turns += 1) await turn();
  expect(thrown).toEqual([]);
});

test('a zip of many files keeps nothing of those that were read', async () => {
  const names = Array.from({ length: 30 }, (_, at) => `file-${at}`);
  const { objects } = storeOf(Object.fromEntries(names.map((name) => [name, () => pieces(1)])));
  const { body } = await zipOf(
    objects,
    SESSION,
    names.map((name) => fileOf(name, 1)),
  );
  let most = 0;
  for await (const _ of body) most = Math.max(most, body.listenerCount('close'));
  expect(most).toBeLessThan(10);
});

test('a zip without a reader ends nothing', async () => {
  const { objects } = storeOf({ a: () => null });
  await zipOf(objects, SESSION, [fileOf('a', 2)]);
  for (let turns = 0; turns < 10; turns += 1) await turn();
  expect(thrown).toEqual([]);
});

test('a reader that goes leaves no file open', async () => {
  const { objects, open } = storeOf({ a: () => pieces(1_000) });
  const { body } = await zipOf(objects, SESSION, [fileOf('a', 1_000)]);
  for await (const _ of body) break;
  await expect.poll(open).toBe(0);
  expect(thrown).toEqual([]);
});
