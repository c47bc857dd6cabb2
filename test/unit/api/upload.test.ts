import { Readable } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { beforeEach, expect, it, test } from 'vitest';
import type { SessionState } from '#events/session.ts';
import { takeUpload } from '#src/api/files/upload.ts';
import type { ApiDependencies } from '#src/api/dependencies.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { createMemoryEventStore } from '#src/event-store/event-store.memory.ts';
import type { FileAnswer, FileQuestion } from '#src/messaging/session-files.ts';
import { createMemoryObjectStore } from '#src/objects/object-store.memory.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, requested } from '#test/support/examples.ts';

/** What is left of an upload in the object store, by what the session's server answers. */

const session = foldAll<'session'>(sessionRef, null, [requested(), activated()]);
let objects: ReturnType<typeof createMemoryObjectStore>;
beforeEach(() => {
  objects = createMemoryObjectStore();
});

/** Uploads a file to a session whose server gives these answers to `place`, one after the other. */
async function upload(...answers: FileAnswer[]) {
  const ask = async (_: string, { ask }: FileQuestion): Promise<FileAnswer> =>
    ask === 'begin'
      ? { kind: 'begun', bytesMax: 100, limit: 'quota' }
      : (answers.shift() ?? { kind: 'failed' });
  const dependencies = {
    objects,
    sessionFiles: { ask },
    context: createCommandContext(createMemoryEventStore(), Date.now),
  } as unknown as ApiDependencies;
  const socket = { setTimeout: () => undefined, off: () => undefined };
  const body = Object.assign(Readable.from([Buffer.from('abc')]), { socket });
  const active = session as Extract<SessionState, { status: 'active' }>;
  return takeUpload(dependencies, active, 'a', body as unknown as IncomingMessage, 3);
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
