import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Aggregates } from '#events/events.ts';
import { streamFilter, type AggregateKind, type AggregateRef } from '#events/subjects.ts';
import { openArchive } from '#src/archive/archive.ts';
import { verifyArchive } from '#src/archive/verify.ts';
import { runArchive, type ArchiveRunDependencies } from '#src/archivist/archive-run.ts';
import { isFinished } from '#src/commands/carry-forward.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { evolve, loadState } from '#src/event-store/load-state.ts';
import type { RawRecord } from '#src/event-store/raw-records.ts';
import { signer } from '#test/support/archive/archive.fixture.ts';
import {
  eventsIn,
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

/** Dependencies of a process that is killed at its n-th change. */
function dyingAt(change: number, moment: Moment): { deps: ArchiveRunDependencies; at: string[] } {
  const { dependencies: sound, store } = test;
  const at: string[] = [];
  function dying<Args extends unknown[], Result>(
    name: string,
    work: (...args: Args) => Promise<Result>,
  ) {
    return async (...args: Args): Promise<Result> => {
      at.push(name);
      if (at.length > change) throw new Killed();
      if (at.length < change) return work(...args);
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
  return { deps, at };
}

async function dies(deps: ArchiveRunDependencies): Promise<boolean> {
  try {
    await runArchive(deps, later(), new AbortController().signal);
    return false;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return true;
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
  const run = await runArchive(dependencies, later(), new AbortController().signal);
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

/** Something happens, a run is killed at a change, and the next one finishes; null: not killed. */
async function killedAt(change: number, moment: Moment, name: string): Promise<string | null> {
  await happens([
    ...sessionLife('acme', `ended_${name}`, true),
    workloadLife(`wl_${name}`, `ended_${name}`, true),
    ...(change % 8 === 0 ? sessionLife('other', `open_${name}`, false) : []),
  ]);
  await test.untilFolded();
  await expectAllThere();
  const before = await eventsIn(test.store.eventStore);
  const { deps, at } = dyingAt(change, moment);
  const isKilled = await dies(deps);
  await expectAllThere();
  expect((await eventsIn(test.store.eventStore)).slice(0, before.length)).toEqual(before);
  await expectOpenInLog();
  await finish();
  return isKilled ? (at[change - 1] ?? null) : null;
}

it.each(['before', 'after'] as const)(
  'a run that is killed %s any of its changes is finished by the next one',
  async (moment) => {
    const reached = new Set<string>();
    let change = 1;
    for (; ; change += 1) {
      const at = await killedAt(change, moment, `${moment}_${change}`);
      if (at === null) break;
      reached.add(at);
    }
    expect(change).toBeGreaterThan(15);
    // Lookup files are merged with some segments only, after the first three changes.
    for (let more = 0; !reached.has('remove') && more < 16; more += 1)
      reached.add((await killedAt(4 + (more % 4), moment, `${moment}_more_${more}`)) ?? '');
    const changes = ['write', 'writeNew', 'remove', 'append', 'truncate', 'truncatePublic'];
    expect([...reached].toSorted()).toEqual([...changes, 'removeUpTo'].toSorted());
  },
);
