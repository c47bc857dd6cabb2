import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import { createTransfers, type Transfers } from '#src/roles/api/http/transfers.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { ObjectStoreFull } from '#src/kernel/objects/object-store.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';
import { takeUpload } from '#src/features/files/routes/upload.ts';
import type { ApiDependencies } from '#src/roles/api/dependencies.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { FileAnswer, FileQuestion } from '#src/kernel/messaging/session-files.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, requested } from '#test/support/examples.ts';

/** What is left of an upload in the object store, by what the session's server answers. */

const session = foldAll<'session'>(sessionRef, null, [requested(), activated()]);
useVirtualTime();

let objects: ReturnType<typeof createMemoryObjectStore>;
let transfers: Transfers;
/** What the session's server was asked, in order. */
let asked: FileQuestion[];
beforeEach(() => {
  asked = [];
  objects = createMemoryObjectStore();
  transfers = createTransfers({ upload: 60, download: 1, extension: 1, command: 1 });
});

/** Uploads a file to a session whose server gives these answers to `place`, one after the other. */
async function upload(...answers: FileAnswer[]) {
  return uploadFrom(Readable.from([Buffer.from('abc')]), 3, ...answers);
}

async function uploadFrom(body: Readable, bytes: number | null, ...answers: FileAnswer[]) {
  async function ask(_: string, kind: string, question: FileQuestion): Promise<FileAnswer> {
    expect(kind).toBe('files');
    asked.push(question);
    if (question.ask === 'begin') return { kind: 'begun', bytesMax: 100, limit: 'quota' };
    if (question.ask === 'drop') throw new Unavailable('event-log');
    return answers.shift() ?? { kind: 'failed' };
  }
  const dependencies = {
    objects,
    transfers,
    serverQuestions: { ask },
    context: createCommandContext(createMemoryEventStore(), Date.now),
  } as unknown as ApiDependencies;
  const active = session as Extract<SessionState, { status: 'active' }>;
  return takeUpload(dependencies, active, 'a', body, bytes);
}
const kept = async () => (await Array.fromAsync(objects.list('files/'))).length;

it('is kept once it is placed', async () => {
  const at = '2026-11-20T09:00:00.000Z';
  expect(await upload({ kind: 'placed', path: '/a', isNew: true, at })).toMatchObject({
    path: '/a',
  });
  expect(await kept()).toBe(1);
});

it('is removed where the server has refused it', async () => {
  const refused = { kind: 'refused', reason: 'quota', max: 100, of: 'bytes' } as const;
  expect(await upload(refused)).toMatchObject({ code: 'FILES_QUOTA_EXCEEDED' });
  expect(await kept()).toBe(0);
});

// The event of the file may be stored, and only the answer was lost.
test.each<[string, FileAnswer]>([
  ['the session has ended', { kind: 'not-here' }],
  ['the server has gone', { kind: 'no-server' }],
  ['the server could not tell', { kind: 'failed' }],
])('stays for the sweep where its outcome is not known: %s', async (_, answer) => {
  expect(await upload({ kind: 'working' }, answer)).toHaveProperty('code');
  expect(await kept()).toBe(1);
});

/** What was asked, with what names the upload. */
const askedOf = () =>
  asked.map((question) => `${question.ask} ${'fileId' in question ? question.fileId : ''}`);

describe('one that the session does not get holds none of its room', () => {
  const [full, more] = [new ObjectStoreFull(1), new Unavailable('object-store')];
  const whole = () => Readable.from([Buffer.from('abc')]);
  async function* broken() {
    yield Buffer.from('a');
    throw new Error('the connection has closed');
  }

  test.each<[string, () => Readable, Error | null]>([
    ['it breaks off', () => Readable.from(broken()), null],
    ['it is larger than its client said', () => Readable.from([Buffer.alloc(101)]), null],
    ['the object store is full', whole, full],
    ['the object store does not answer', whole, more],
  ])('%s', async (_, body, error) => {
    if (error !== null) objects.put = () => Promise.reject(error);
    await uploadFrom(body(), 3).catch((thrown: unknown) => expect(thrown).toBe(error));
    const [begun] = asked;
    const fileId = begun?.ask === 'begin' ? begun.fileId : '';
    expect(fileId).toMatch(/^fil_/);
    expect(askedOf()).toEqual([`begin ${fileId}`, `drop ${fileId}`]);
    expect(asked[1]).toMatchObject({ name: 'a', sessionId: session?.id });
  });

  it('also where the question to place it may be lost', async () => {
    await upload({ kind: 'no-server' });
    expect(asked.map(({ ask }) => ask)).toEqual(['begin', 'place', 'drop']);
  });

  it('nor asks for any before it has its place among the transfers', async () => {
    transfers = createTransfers({ upload: 1, download: 1, extension: 1, command: 1 });
    using _ = (await transfers.begin('upload', session!.organizationId)) as Disposable;
    expect(await upload()).toMatchObject({ code: 'TRANSFER_LIMIT_EXCEEDED' });
    expect(asked).toEqual([]);
  });

  it('while one that it gets gives nothing back', async () => {
    await upload({ kind: 'placed', path: '/a', isNew: true, at: '2026-11-20T09:00:00.000Z' });
    expect(asked.map(({ ask }) => ask)).toEqual(['begin', 'place']);
  });
});

/** A client that sends a byte every so many ms, and never comes to an end. */
async function* drip(everyMs: number): AsyncGenerator<Buffer> {
  for (;;) {
    await sleep(everyMs, undefined, { ref: false });
    yield Buffer.from('x');
  }
}

test('forty that drip: a third of the places, two minutes each, and nothing is stored', async () => {
  const begunAt = performance.now();
  const seconds: number[] = [];
  const drips = Array.from({ length: 40 }, async () => {
    const refused = await uploadFrom(Readable.from(drip(7_000)), null);
    seconds.push(Math.round((performance.now() - begunAt) / 1_000));
    return refused;
  });
  const refusals = await Promise.all(drips);
  const slow = refusals.filter((one) => 'code' in one && one.code === 'FILE_INCOMPLETE');
  const full = refusals.filter((one) => 'code' in one && one.code === 'TRANSFER_LIMIT_EXCEEDED');
  expect([slow.length, full.length]).toEqual([20, 20]);
  expect(slow[0]).toMatchObject({
    message: 'The upload was silent for 30 s, or slower than 64 KiB a second for 120 s.',
    context: { name: 'a', bytes_received: 17 },
  });
  expect(seconds).toEqual([...Array(20).fill(10), ...Array(20).fill(120)]);
  expect(await kept()).toBe(0);
  // Their places are free again.
  const at = '2026-11-20T09:00:00.000Z';
  const after = await upload({ kind: 'placed', path: '/a', isNew: true, at });
  expect(after).toMatchObject({ path: '/a' });
});

test('one that falls silent ends after 30 s', async () => {
  const begunAt = performance.now();
  const silent = Readable.from(drip(1_000_000));
  expect(await uploadFrom(silent, null)).toMatchObject({ code: 'FILE_INCOMPLETE' });
  expect(performance.now() - begunAt).toBe(30_000);
  expect(await kept()).toBe(0);
});
