import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Aggregates } from '#events/events.ts';
import { streamFilter, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import {
  runArchive,
  type ArchiveRunDependencies,
} from '#src/features/archive/archivist/archive-run.ts';
import { isFinished } from '#src/commands/carry-forward.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { evolve, loadState } from '#src/kernel/event-store/load-state.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { signer } from '#test/support/archive/archive.fixture.ts';
import {
  eventsIn,
  everythingBefore,
  later,
  live,
  manyLives,
  recordsIn,
  sessionLife,
  workloadLife,
} from '#test/support/archive/archived-log.ts';
import {
  contentOf,
  openArchivistTest,
  rebuilt,
  type ArchivistTest,
} from '#test/support/archive/archivist.fixture.ts';

/**
 * The archivist dies at each call that changes something, before or after its work is done. One log
 * goes through all these deaths: each finds an archive of another length, and other lookup files.
 */

class Killed extends Error {}
type Moment = 'before' | 'after';

let test: ArchivistTest;
/** Each record that was ever in the log, in the order of the sequences. */
const known: RawRecord[] = [];
const aggregates = new Map<string, AggregateRef>();

beforeAll(async () => {
  test = await openArchivistTest();
  await happens(manyLives());
});
afterAll(() => test?.[Symbol.asyncDispose]());

async function happens(lives: ReturnType<typeof manyLives>): Promise<void> {
  for (const one of await live(test.store.eventStore, lives))
    aggregates.set(streamFilter(one), one);
}

/** Whether the last of the changes that were made is that of the kill. */
type Last = (changes: readonly string[]) => boolean;

/** Dependencies of a process that is killed at a change; `killedAt` names it. */
function dyingAt(isLast: Last, moment: Moment) {
  const { dependencies: sound, store } = test;
  const changes: string[] = [];
  let killed: string | null = null;
  function dying<Args extends unknown[], Result>(
    name: string,
    work: (...args: Args) => Promise<Result>,
  ) {
    return async (...args: Args): Promise<Result> => {
      if (killed !== null) throw new Killed();
      changes.push(name);
      if (!isLast(changes)) return work(...args);
      killed = name;
      if (moment === 'after') await work(...args);
      throw new Killed();
    };
  }
  const { files, truncation, views } = sound;
  const { write, writeNew, remove } = files;
  const { append } = store.eventStore;
  const eventStore = { ...store.eventStore, append: dying('append', append) };
  const deps = {
    ...sound,
    context: createCommandContext(eventStore, Date.now),
    files: {
      ...files,
      write: dying('write', write),
      writeNew: dying('writeNew', writeNew),
      remove: dying('remove', remove),
    },
    truncation: {
      ...truncation,
      truncate: dying('truncate', truncation.truncate),
      truncatePublic: dying('truncatePublic', truncation.truncatePublic),
    },
    views: { ...views, removeUpTo: dying('removeUpTo', views.removeUpTo) },
  };
  return { deps, killedAt: () => killed };
}

async function untilKilled(deps: ArchiveRunDependencies): Promise<void> {
  try {
    await runArchive(deps, everythingBefore(later()), new AbortController().signal);
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
}

/** Nothing is lost, nothing is there twice, and nothing was changed. */
async function expectAllThere(): Promise<{ end: number; first: number }> {
  const { store } = test;
  const { firstSequence: first, lastSequence: last } = await store.log.info();
  // What was appended since is in the log.
  known.push(...(await recordsIn(store.logRecords, known.length, last)));
  expect(known.map(({ sequence }) => sequence)).toEqual(known.map((_, at) => at + 1));
  const archive = await openArchive(store.files);
  const end = archive.endSequence();
  expect(end).toBeGreaterThanOrEqual(first - 1);
  expect(await recordsIn(archive.records, 0, Infinity)).toEqual(known.slice(0, end));
  expect(await recordsIn(store.logRecords, 0, last)).toEqual(known.slice(first - 1));
  expect(await recordsIn(store.records, 0, last)).toEqual(known);
  return { end, first };
}

/** The fold of all that is known of an aggregate, by the event store with its archive. */
async function folded(aggregate: AggregateRef) {
  let state: Aggregates[AggregateKind]['state'] | null = null;
  for await (const event of test.store.eventStore.history<AggregateKind>(aggregate))
    state = evolve<AggregateKind>(aggregate, state, event);
  return state;
}

async function expectOpenInLog(): Promise<void> {
  const { log, eventStore } = test.store;
  let open = 0;
  for (const aggregate of aggregates.values()) {
    const state = await folded(aggregate);
    if (state === null) throw new Error(`${streamFilter(aggregate)} is gone`);
    if (aggregate.kind === 'session')
      expect((await loadState<'session'>(eventStore, aggregate)).state).toEqual(state);
    if (isFinished(aggregate.kind, state)) continue;
    open += 1;
    expect((await loadState<AggregateKind>(log, aggregate)).state).toEqual(state);
  }
  expect(open).toBeGreaterThan(7);
}

async function finish(): Promise<void> {
  const { dependencies, store, views } = test;
  await test.untilFolded();
  const run = await runArchive(
    dependencies,
    everythingBefore(later()),
    new AbortController().signal,
  );
  expect(run.heldBack).toBeNull();
  const { end, first } = await expectAllThere();
  expect([run.truncatedTo, first - 1]).toEqual([end, end]);
  const { id } = await store.log.info();
  const options = { signer: signer.fingerprint, log: id, endSequence: end };
  expect(await verifyArchive(store.files, options)).toMatchObject({ findings: [], records: end });
  await expectOpenInLog();
  await test.untilFolded();
  expect(await contentOf(views)).toEqual(await rebuilt(store.log));
}

let rounds = 0;

/** Something happens, a run is killed at a change, and the next one finishes; null: not killed. */
async function killedAt(isLast: Last, moment: Moment): Promise<string | null> {
  rounds += 1;
  await happens([
    ...sessionLife('acme', `ended_${rounds}`, true),
    workloadLife(`browser_${rounds}`, `ended_${rounds}`, true),
    ...(rounds % 8 === 0 ? sessionLife('other', `open_${rounds}`, false) : []),
  ]);
  await test.untilFolded();
  await expectAllThere();
  const before = await eventsIn(test.store.eventStore);
  const dying = dyingAt(isLast, moment);
  await untilKilled(dying.deps);
  await expectAllThere();
  expect((await eventsIn(test.store.eventStore)).slice(0, before.length)).toEqual(before);
  await expectOpenInLog();
  await finish();
  return dying.killedAt();
}

it.each(['before', 'after'] as const)(
  'a run that is killed %s any of its changes is finished by the next one',
  async (moment) => {
    const reached = new Set<string>();
    let change = 1;
    for (; ; change += 1) {
      const at = await killedAt(({ length }) => length === change, moment);
      if (at === null) break;
      reached.add(at);
    }
    expect(change).toBeGreaterThan(15);
    // Lookup files are merged, and removed, after every second segment. A run that is killed at its
    // first write seals none, so that the next one is killed at another number of them.
    const names = ['write', 'writeNew', 'remove', 'append', 'truncate', 'truncatePublic'];
    for (const name of [...names, 'removeUpTo'])
      for (let tries = 0; !reached.has(name) && tries < 8; tries += 1) {
        const at = tries % 2 === 0 ? name : 'write';
        reached.add((await killedAt((changes) => changes.at(-1) === at, moment)) ?? '');
      }
    expect([...reached]).toEqual(expect.arrayContaining([...names, 'removeUpTo']));
  },
);
