import { expect, test } from 'vitest';
import { filesRetention } from '#src/features/archive/archivist/files-retention.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import {
  activated,
  failed,
  HOUR,
  MINUTE,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';

const begun = [requested(), activated()];
const retainMs = 24 * HOUR;
const group = { kind: 'files', organizationId: 'acme', id: 'ses_1', objects: 1, bytes: 1 };

test.each([
  ['an active session', begun, 100 * HOUR, 'keep'],
  ['one that stops', [...begun, stopRequested()], 100 * HOUR, 'keep'],
  ['one that has stopped', [...begun, stopRequested(), stopped(T0, 1)], retainMs, 'keep'],
  [
    'one that stopped a day ago',
    [...begun, stopRequested(), stopped(T0, 1)],
    retainMs + 1,
    'expired',
  ],
  ['one that failed long ago', [...begun, failed()], 100 * HOUR, 'expired'],
  ['one that nothing is known of', [], retainMs + MINUTE, 'keep'],
  ['one that nothing was known of for long', [], retainMs + MINUTE + 1, 'expired'],
])('the files of %s', async (_, events, afterMs, verdict) => {
  const session = events.length === 0 ? null : foldAll<'session'>(sessionRef, null, events);
  const rule = filesRetention({
    readSession: async () => session,
    retainMs,
    now: () => T0 + afterMs,
  });
  expect(await rule.judge({ ...group, newestAt: T0 + MINUTE })).toBe(verdict);
});
