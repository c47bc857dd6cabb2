import { describe, expect, it } from 'vitest';
import { ARCHIVE } from '#events/archive/archive.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { tablesOf } from '#src/features/archive/lookups/lookup-files.ts';
import {
  runArchive,
  type ArchiveRunDependencies,
} from '#src/features/archive/archivist/archive-run.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { openTest } from '#test/support/archive/archivist-in-memory.ts';

/** An archive whose runs seal what was stored up to a time, a segment each. */
function openRuns() {
  const { dependencies, first } = openTest();
  const { eventStore } = dependencies.context;
  return {
    dependencies,
    eventStore,
    first,
    files: dependencies.files,
    head: async () => (await loadState<'archive'>(eventStore, ARCHIVE)).state?.segment ?? null,
    segments: async () => (await openArchive(dependencies.files)).segments().length,
    run(
      upTo: number,
      other: Partial<ArchiveRunDependencies> = {},
      signal = new AbortController().signal,
    ) {
      const never = new Date(0).toISOString();
      const before = new Date(upTo).toISOString();
      const retention = { before, eventsMax: Infinity, excessBefore: never };
      return runArchive({ ...dependencies, ...other }, retention, signal);
    },
  };
}

/** What a run needs, with the calls of the event store that are given in place of its own. */
function through(eventStore: EventStore, other: Partial<EventStore>) {
  return { context: createCommandContext({ ...eventStore, ...other }, Date.now) };
}

const lookupsIn = (names: readonly string[]) =>
  names.filter((name) => name.startsWith('lookup') && !name.endsWith('.sums'));

describe('an archive', () => {
  it('whose end cannot be recorded gets one segment, however often a run is repeated, and goes on once it can', async () => {
    const { run, eventStore, segments, first, head } = openRuns();
    const refusing = through(eventStore, {
      append: () => Promise.reject(new Error('no permission')),
    });
    for (const upTo of [100, 160, 220]) await expect(run(upTo, refusing)).rejects.toThrow();
    expect([await segments(), first(), await head()]).toEqual([1, 1, null]);
    await run(280);
    expect([await segments(), first(), await head()]).toEqual([2, 281, 2]);
  });

  const refuse = () => Promise.reject(new Error('no permission'));
  it.each<[string, (of: ArchiveRunDependencies) => Partial<ArchiveRunDependencies>]>([
    ['log', ({ truncation }) => ({ truncation: { ...truncation, truncate: refuse } })],
    ['PUBLIC', ({ truncation }) => ({ truncation: { ...truncation, truncatePublic: refuse } })],
    ['read model', ({ views }) => ({ views: { ...views, removeUpTo: refuse } })],
  ])('whose %s cannot be purged gets one segment, too', async (_, refusing) => {
    const { run, segments, first, dependencies } = openRuns();
    for (const upTo of [100, 160, 220])
      await expect(run(upTo, refusing(dependencies))).rejects.toThrow('no permission');
    expect(await segments()).toBe(1);
    await run(280);
    expect([await segments(), first()]).toEqual([2, 281]);
  });
});

describe('an archivist that lost its lease', () => {
  it('while it waited, does not take the recorded end back', async () => {
    const { run, eventStore, head, dependencies } = openRuns();
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let looks = -Infinity;
    const paused = through(eventStore, {
      async readLast(aggregate, options) {
        // After the seal the refresh looks first, and then the command.
        looks += 1;
        if (looks === 2) {
          reached.resolve();
          await released.promise;
        }
        return eventStore.readLast(aggregate, options);
      },
    });
    const truncation = { ...dependencies.truncation, truncate: async () => undefined };
    const late = run(100, { ...paused, truncation, onSealed: () => (looks = 0) });
    await reached.promise;
    await run(200);
    expect(await head()).toBe(2);
    released.resolve();
    await late;
    expect(await head()).toBe(2);
  });

  it('records no end', async () => {
    const { run, head, segments } = openRuns();
    const lost = new AbortController();
    const onSealed = () => lost.abort(new Error('the lease was lost'));
    await expect(run(100, { onSealed }, lost.signal)).rejects.toThrow('the lease was lost');
    expect([await segments(), await head()]).toEqual([1, null]);
  });
});

describe('lookup files', () => {
  it('stay until the log knows the end with which one file replaces them', async () => {
    const { run, eventStore, files } = openRuns();
    for (let segment = 1; segment <= 7; segment += 1) await run(segment * 20);
    const before = tablesOf(7, await files.list());
    expect(before).toHaveLength(3);
    const killed = through(eventStore, { append: () => Promise.reject(new Error('killed')) });
    await expect(run(160, killed)).rejects.toThrow('killed');
    expect(tablesOf(7, await files.list())).toEqual(before);
    await run(160);
    expect(lookupsIn(await files.list())).toEqual(['lookup-000001-000008']);
  });

  it('that were removed are made anew by a run that has nothing to seal', async () => {
    const { run, files } = openRuns();
    for (let segment = 1; segment <= 3; segment += 1) await run(segment * 20);
    const lookup = await files.read('lookup-000001-000002');
    await files.remove('lookup-000001-000002');
    expect((await run(60)).segments).toBe(0);
    expect(await files.read('lookup-000001-000002')).toEqual(lookup);
  });
});
