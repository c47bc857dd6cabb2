import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { projectionId } from '#projections/projection.ts';
import { headers } from '@nats-io/transport-node';
import { filters } from '#events/subjects.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import {
  ArchiveMismatch,
  runArchive,
  type Retention,
} from '#src/features/archive/archivist/archive-run.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { copyOf, recordsFrom, seal } from '#test/support/archive/archive.fixture.ts';
import {
  everythingBefore,
  later,
  live,
  manyLives,
  sessionLife,
} from '#test/support/archive/archived-log.ts';
import { openArchivistTest, type ArchivistTest } from '#test/support/archive/archivist.fixture.ts';
import { withForeignStates } from '#test/support/stores/foreign-states.ts';
import { eventually } from '#test/support/service/service.ts';

let test: ArchivistTest;

beforeEach(async () => {
  test = await openArchivistTest();
  await live(test.store.eventStore, manyLives());
  await test.untilFolded();
});
afterEach(() => test?.[Symbol.asyncDispose]());

const run = (
  other: Partial<ArchivistTest['dependencies']> = {},
  retention: Retention = everythingBefore(later()),
) => runArchive({ ...test.dependencies, ...other }, retention, new AbortController().signal);
const firstSequence = async () => (await test.store.log.info()).firstSequence;
const open = { kind: 'session', organizationId: 'acme', id: 'ses_2' } as const;
const readView = () =>
  test.views.read(projectionId(sessionView), sessionKey(open.organizationId, open.id));

/** What is sealed stays in the log for somebody, until a later run. */
async function expectHeldBack(by: string): Promise<void> {
  const held = await run();
  expect(held.heldBack).toContain(by);
  expect(held.truncatedTo).toBe(0);
  expect(held.viewsRemoved).toBe(0);
  expect(await firstSequence()).toBe(1);
}

async function expectPurged(): Promise<void> {
  await test.untilFolded();
  const purged = await run();
  expect(purged).toMatchObject({ heldBack: null });
  expect(purged.truncatedTo).toBeGreaterThan(40);
  expect(await firstSequence()).toBe(purged.truncatedTo + 1);
}

describe('events that are sealed stay in the log', () => {
  it('for a work queue that has not finished them', async () => {
    const { real, truncation } = test.store;
    const queue = await real.openWorkQueue('workers', filters.sessionRequests);
    await expectHeldBack('workers');
    expect((await openArchive(test.store.files)).endSequence()).toBeGreaterThan(40);
    const isFinished = async () => {
      const item = await queue.next(200, new AbortController().signal);
      await item?.ack();
      return (await truncation.heldBackTo()) === null;
    };
    await eventually(isFinished, 'it is finished');
    await expectPurged();
  });

  it('for the publisher', async () => {
    const publish = async (sequence: number) => {
      const named = headers();
      named.set('ce-sequence', String(sequence));
      const subject = 'pub.acme.session.s.accessed';
      await test.store.real.connection.js.publish(subject, '{}', { headers: named });
    };
    await publish(3);
    await expectHeldBack('PUBLIC');
    await publish(await test.store.log.lastSequence());
    await expectPurged();
  });

  it('for a projection', async () => {
    await test.stopProjectors();
    await live(test.store.eventStore, sessionLife('acme', 'ses_9', true));
    await expectHeldBack('the read model');
    test.startProjectors();
    await expectPurged();
  });

  it('until the read model has what was carried forward: its views are not archived ones', async () => {
    // The projections have all that is archived, and nothing after it.
    const { append } = test.store.eventStore;
    const eventStore: typeof test.store.eventStore = {
      ...test.store.eventStore,
      async append(changes) {
        await test.stopProjectors();
        return append(changes);
      },
    };
    const context = createCommandContext(eventStore, Date.now);
    // The wait's own bound takes ten seconds: it is not what is tested.
    const views = {
      ...test.views,
      waitForCheckpoint: (id: string, sequence: number) =>
        test.views.waitForCheckpoint(id, sequence, 50),
    };
    expect(await readView()).not.toBeNull();
    const held = await run({ context, views });
    expect(held.carriedForward).toBeGreaterThan(5);
    expect(held.heldBack).toContain('the read model');
    expect(await firstSequence()).toBe(1);
    expect(await readView()).not.toBeNull();
    test.startProjectors();
    await expectPurged();
    expect(await readView()).not.toBeNull();
  });
});

it('a store with too many events loses the oldest that are old enough', async () => {
  const { lastSequence } = await test.store.log.info();
  const never = '1970-01-01T00:00:00Z';
  const few = { before: never, excessBefore: later(), eventsMax: lastSequence };
  expect(await run({}, few)).toMatchObject({ segments: 0, truncatedTo: 0 });
  const young = { before: never, excessBefore: never, eventsMax: 20 };
  expect(await run({}, young)).toMatchObject({ segments: 0, truncatedTo: 0 });
  const purged = await run({}, { ...young, excessBefore: later() });
  expect(purged).toMatchObject({ heldBack: null, truncatedTo: lastSequence - 16 });
  expect(await firstSequence()).toBe(lastSequence - 15);
});

it('a state of another version is carried forward as the whole history makes it', async () => {
  await run();
  await test.untilFolded();
  const context = createCommandContext(withForeignStates(test.store.eventStore), Date.now);
  const before = await loadState<'session'>(test.store.eventStore, open);
  await live(test.store.eventStore, sessionLife('acme', 'ses_9', true));
  await test.untilFolded();
  const second = await run({ context });
  expect(second.heldBack).toBeNull();
  const after = await loadState<'session'>(test.store.log, open);
  expect(after.state).toEqual(before.state);
  expect(after.sequence).toBeGreaterThan(before.sequence);
});

describe('an archive is refused, and nothing is purged,', () => {
  const refused = async (
    files: ArchivistTest['dependencies']['files'],
    error: unknown,
    context = test.dependencies.context,
  ) => {
    const before = await test.store.log.info();
    await expect(run({ files, context })).rejects.toThrow(error);
    expect(await test.store.log.info()).toEqual(before);
  };
  /** A log that does not know where its archive ends. */
  const withoutHead = () => {
    const { eventStore } = test.store;
    const headless: typeof eventStore = {
      ...eventStore,
      readLast: async (aggregate, options) =>
        aggregate.kind === 'archive' ? null : eventStore.readLast(aggregate, options),
    };
    return createCommandContext(headless, Date.now);
  };

  it('if it is of another event store, and ends where this one begins', async () => {
    await expectPurged();
    const border = (await firstSequence()) - 1;
    const files = createMemoryFiles();
    await seal(files, recordsFrom(1, border, 1_500), { log: 'another' });
    await live(test.store.eventStore, sessionLife('acme', 'ses_after', true));
    await test.untilFolded();
    await refused(files, 'the manifest is not the one that the event store names');
    await refused(files, ArchiveMismatch, withoutHead());
  });

  it('if it is of another event store', async () => {
    const files = createMemoryFiles();
    await seal(files, recordsFrom(1, 20));
    await refused(files, ArchiveMismatch);
  });

  it('if it is longer than the event store', async () => {
    const files = createMemoryFiles();
    await seal(files, recordsFrom(1, 700));
    await refused(files, ArchiveMismatch);
  });

  it('if events are missing between it and the event store', async () => {
    const files = await copyOf(test.store.files);
    await run();
    for (const one of [files, createMemoryFiles()]) {
      await refused(one, 'the event store knows of 1 segments');
      await refused(one, ArchiveMismatch, withoutHead());
    }
  });

  it.each(['000001.ndjson.zst', '000001.index', '000001.json'])(
    'if %s was altered between the seal and the purge',
    async (name) => {
      const { files, truncation } = test.store;
      const killed = new Error('killed');
      const dying = { ...truncation, truncate: () => Promise.reject(killed) };
      await expect(run({ truncation: dying })).rejects.toBe(killed);
      await test.untilFolded();
      const whole = await files.read(name);
      for (const at of [0, whole.length >> 1, whole.length - 2]) {
        const altered = Buffer.from(whole);
        altered[at] = (altered[at] ?? 0) ^ 1;
        await files.write(name, altered);
        await refused(files, /segment 1/);
      }
      await files.write(name, whole.subarray(0, -3));
      await refused(files, /segment 1/);
      await files.write(name, whole);
      await expectPurged();
      expect(await test.store.log.readLast(open)).not.toBeNull();
    },
  );
});
