import { expect, test } from 'vitest';
import type { RecordedEvent } from '#events/events.ts';
import { filterOf, filters } from '#events/subjects.ts';
import { createMemoryEventLog } from '#src/log/event-log.memory.ts';
import type { EventLog } from '#src/log/event-log.ts';
import { throughOneReader } from '#src/log/one-reader.ts';
import { aSession } from '../events.fixture.ts';
import { appendEach, followed } from './event-logs.ts';

/** A log that counts how often it is followed. */
function countedLog(): EventLog & { followers: () => number } {
  const log = createMemoryEventLog({});
  let followers = 0;
  return {
    ...log,
    follow(options) {
      followers += 1;
      return log.follow(options);
    },
    followers: () => followers,
  };
}

test('however many follow from the end, the log is read once', async () => {
  const counted = countedLog();
  await using log = await throughOneReader(counted);
  const hearing = Array.from({ length: 20 }, () =>
    followed(log, { subjects: filters.sessions, after: 0 }, 30),
  );
  const sequences = await appendEach(log, aSession(), 30);
  for (const batches of await Promise.all(hearing))
    expect(batches.flat().map(({ sequence }) => sequence)).toEqual(sequences);
  expect(counted.followers()).toBe(1);
});

test('a follower that fell behind what is kept reads what it missed, and joins again', async () => {
  const counted = countedLog();
  await using log = await throughOneReader(counted, 5);
  const stop = new AbortController();
  const options = { subjects: filters.sessions, after: 0, batchMax: 3, signal: stop.signal };
  const batches = log.follow({ ...options, onMalformed: () => undefined })[Symbol.asyncIterator]();
  async function next(): Promise<number[]> {
    const { value } = await batches.next();
    return (value as RecordedEvent[] | undefined)?.map(({ sequence }) => sequence) ?? [];
  }
  const first = appendEach(log, aSession(), 2);
  const heard = await next();
  await first;
  // It does not take anything while these come.
  const missed = await appendEach(log, aSession(), 40);
  const last = missed.at(-1) ?? 0;
  while ((heard.at(-1) ?? 0) < last) heard.push(...(await next()));
  expect(heard).toEqual(Array.from({ length: last }, (_, index) => index + 1));
  expect(counted.followers()).toBe(2);
  const hearing = next();
  expect(await appendEach(log, aSession(), 1)).toEqual(await hearing);
  expect(counted.followers()).toBe(2);
  stop.abort();
});

test('what is older than its beginning is there for those who ask for it', async () => {
  const counted = countedLog();
  const session = aSession();
  const before = await appendEach(counted, session, 7);
  await appendEach(counted, aSession(), 3);
  await using log = await throughOneReader(counted);
  const hearing = followed(log, { subjects: [filterOf(session)], after: before[2] ?? 0 }, 4);
  expect((await hearing).flat().map(({ sequence }) => sequence)).toEqual(before.slice(3));
});
