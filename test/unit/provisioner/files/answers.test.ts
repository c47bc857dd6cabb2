import { beforeEach, expect, it } from 'vitest';
import { filesMax } from '#events/session/files.ts';
import { createAnswers } from '#src/features/files/answers.ts';
import {
  SessionFileStore,
  type FileStoreDependencies,
} from '#src/features/files/session-file-store.ts';
import type { FileAnswer } from '#src/kernel/messaging/session-files.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** The room of a session that uploads hold while they are under way. */

useVirtualTime();

const LIMITS = { fileBytesMax: 1_000, sessionBytesMax: 2_000 };
const of = { organizationId: 'acme', sessionId: 'ses_1', workloadId: 'wl_1' };

let answer: ReturnType<typeof createAnswers>;
let lost: PromiseWithResolvers<never>;
beforeEach(() => {
  lost = Promise.withResolvers();
  const parts = {
    limits: LIMITS,
    now: () => Date.parse('2026-11-20T09:00:00Z'),
    objects: { get: () => lost.promise },
    reporter: { session: async () => ({}) },
  } as unknown as FileStoreDependencies;
  const identity = { organizationId: 'acme', id: 'ses_1' };
  answer = createAnswers(new SessionFileStore(parts, 'wl_1', identity, async () => new Map()));
});

const begin = (name: string, fileId: string, bytes = 1_000) =>
  answer({ ...of, ask: 'begin', name, fileId, bytes });
const drop = (name: string, fileId: string) => answer({ ...of, ask: 'drop', name, fileId });
const place = (name: string, fileId: string) =>
  answer({ ...of, ask: 'place', name, fileId, bytes: 1_000, sha256: '' });
const kindOf = async (answered: Promise<FileAnswer>) => (await answered).kind;

it('is free again as soon as one is given up', async () => {
  expect(await kindOf(begin('a', 'fil_1'))).toBe('begun');
  expect(await kindOf(begin('b', 'fil_2'))).toBe('begun');
  expect(await kindOf(begin('c', 'fil_3'))).toBe('refused');
  expect(await drop('a', 'fil_1')).toEqual({ kind: 'dropped' });
  expect(await kindOf(begin('c', 'fil_3'))).toBe('begun');
});

it('takes a further file after as many as it may have were given up', async () => {
  for (let at = 0; at < filesMax; at += 1) {
    await begin(`name-${at}`, `fil_${at}`, 0);
    await drop(`name-${at}`, `fil_${at}`);
  }
  expect(await kindOf(begin('one', 'fil_one', 0))).toBe('begun');
});

it('stays with a second upload of a name where the first is given up', async () => {
  await begin('a', 'fil_1');
  await begin('a', 'fil_2');
  await drop('a', 'fil_1');
  await begin('b', 'fil_3');
  expect(await kindOf(begin('c', 'fil_4'))).toBe('refused');
});

it('is held for ten minutes where its end is not told', async () => {
  await begin('a', 'fil_1');
  await begin('b', 'fil_2');
  await new Promise((resolve) => void setTimeout(resolve, 10 * 60_000 + 1));
  expect(await kindOf(begin('c', 'fil_3'))).toBe('begun');
});

it('is free again where too many wait to be placed, once that one is given up', async () => {
  for (let at = 0; at < 64; at += 1) void place(`waits-${at}`, `fil_${at}`);
  await begin('a', 'fil_a');
  await begin('b', 'fil_b');
  expect(await kindOf(place('a', 'fil_a'))).toBe('failed');
  await drop('a', 'fil_a');
  expect(await kindOf(begin('c', 'fil_c'))).toBe('begun');
});
