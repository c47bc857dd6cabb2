import { expect, it } from 'vitest';
import { openArchive } from '#src/features/archive/archive.ts';
import {
  startArchivist,
  type ArchivistDependencies,
} from '#src/features/archive/archivist/archivist.ts';
import type { Leases } from '#src/kernel/messaging/leases.ts';
import { collect } from '#test/support/archive/archive.fixture.ts';
import { EVERY_MS, openTest, stored } from '#test/support/archive/archivist-in-memory.ts';

const DAY_MS = 24 * 3_600_000;

it('archives when a run is due by the clock, and again after the same time', async () => {
  const { clock, logged, dependencies, archived, until, first, options } = openTest();
  await using _ = startArchivist(dependencies, options);
  clock.ms = EVERY_MS - 1;
  const seen = clock.reads;
  await until(() => clock.reads > seen + 6);
  expect(logged).toEqual([]);
  clock.ms = 100;
  await until(() => logged.length === 1);
  expect(await archived()).toBe(100);
  const seenAgain = clock.reads;
  await until(() => clock.reads > seenAgain + 6);
  expect(logged).toEqual(['archived']);
  clock.ms = 250;
  await until(() => logged.length === 2);
  expect([await archived(), first()]).toEqual([250, 251]);
});

/** Nothing is archived for its age alone. */
const TOO_MANY = { retainEndedMs: 100 * DAY_MS, retainEventsMax: 500 };

it('archives the oldest events before a run is due, if the store has too many', async () => {
  const { clock, logged, dependencies, archived, until, first, options } = openTest();
  clock.ms = DAY_MS + 40;
  await using _ = startArchivist(dependencies, { ...options, ...TOO_MANY, everyMs: 100 });
  const looksAgain = async () => {
    const seen = clock.reads;
    await until(() => clock.reads > seen + 12);
  };
  // 40 of 700 are a day old: too few for a run.
  await looksAgain();
  expect(logged).toEqual([]);
  clock.ms = DAY_MS + 60;
  await until(() => logged.length === 1);
  expect([await archived(), first()]).toEqual([60, 61]);
  clock.ms = DAY_MS + 600;
  await until(() => logged.length === 2);
  // Four fifths of 500 are kept.
  expect([await archived(), first()]).toEqual([300, 301]);
  await looksAgain();
  expect(logged).toEqual(['archived', 'archived']);
});

it('does not archive again what is held back, until a run is due', async () => {
  const { clock, logged, dependencies, archived, until, first, options } = openTest();
  clock.ms = DAY_MS + 600;
  const truncation = {
    ...dependencies.truncation,
    heldBackTo: async () => ({ sequence: 1, by: 'a work queue' }),
  };
  const everyMs = 50;
  const held = { ...dependencies, truncation };
  await using _ = startArchivist(held, { ...options, ...TOO_MANY, everyMs });
  await until(() => logged.length === 2);
  expect(logged).toEqual(['archived', 'archived events stay']);
  const seen = clock.reads;
  await until(() => clock.reads > seen + 12);
  expect(logged.length).toBe(2);
  expect([await archived(), first()]).toEqual([300, 1]);
  clock.ms += everyMs;
  await until(() => logged.length > 2);
  expect(logged.at(-1)).toBe('archived events stay');
});

it('repeats a run that failed', async () => {
  const { clock, logged, dependencies, archived, until, options } = openTest();
  const { files } = dependencies;
  let failures = 2;
  const list = () => {
    failures -= 1;
    return failures >= 0 ? Promise.reject(new Error('the disk is away')) : files.list();
  };
  await using _ = startArchivist({ ...dependencies, files: { ...files, list } }, options);
  for (const ms of [100, 200, 300]) {
    const { length } = logged;
    clock.ms = ms;
    await until(() => logged.length > length);
  }
  const failed = 'archiving failed; it is tried again';
  expect(logged).toEqual([failed, failed, 'archived']);
  expect(await archived()).toBe(300);
});

/** Records whose reading waits, until `release` is called, and a promise of its begin. */
function waitingRecords({ records }: ArchivistDependencies) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let readers = 0;
  return {
    begun: begun.promise,
    release: () => released.resolve(),
    readers: () => readers,
    records: {
      ...records,
      async *readAll(range: Parameters<typeof records.readAll>[0]) {
        readers += 1;
        for await (const batch of records.readAll(range)) {
          yield batch;
          begun.resolve();
          await released.promise;
        }
      },
    },
  };
}

it('works alone: of two archivists, one archives', async () => {
  const { clock, logged, dependencies, archived, until, options } = openTest();
  const waiting = waitingRecords(dependencies);
  const held = { ...dependencies, records: waiting.records };
  const refused = Promise.withResolvers<void>();
  const { acquire } = dependencies.leases;
  const leases: Leases = {
    ...dependencies.leases,
    async acquire(name, holder) {
      const isFree = await acquire(name, holder);
      if (!isFree) refused.resolve();
      return isFree;
    },
  };
  await using one = startArchivist({ ...held, leases }, options);
  await using other = startArchivist({ ...held, leases }, options);
  expect(one).not.toBe(other);
  clock.ms = 100;
  await waiting.begun;
  await refused.promise;
  expect(waiting.readers()).toBe(1);
  waiting.release();
  await until(() => logged.includes('archived'));
  expect(await archived()).toBe(100);
  // The lease is free again.
  clock.ms = 200;
  await until(() => logged.length >= 2);
  expect([await archived(), new Set(logged)]).toEqual([200, new Set(['archived'])]);
});

it('stops in the middle of a segment, and the next one begins it again', async () => {
  const { clock, logged, dependencies, archived, first, until, options } = openTest();
  const waiting = waitingRecords(dependencies);
  const archivist = startArchivist({ ...dependencies, records: waiting.records }, options);
  clock.ms = 600;
  await waiting.begun;
  const stopped = archivist[Symbol.asyncDispose]();
  waiting.release();
  await stopped;
  expect([logged, await archived(), first()]).toEqual([[], 0, 1]);
  expect(await dependencies.leases.held()).toEqual(new Set());
  await using _ = startArchivist(dependencies, options);
  clock.ms = 650;
  await until(() => logged.length === 1);
  expect([await archived(), first()]).toEqual([650, 651]);
  const archive = await openArchive(dependencies.files);
  const range = { after: 0, upTo: 700, organizationId: null };
  expect(await collect(archive.records.read(range))).toEqual(stored.slice(0, 650));
});
