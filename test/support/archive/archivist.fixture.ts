import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Views } from '#projections/store/views.ts';
import type { ArchiveRunDependencies } from '#src/features/archive/archivist/archive-run.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { withSharedSubscription } from '#src/kernel/event-store/shared-subscription.ts';
import { startProjector, untilCheckpoint } from '#test/support/projector.ts';
import { signer } from './archive.fixture.ts';
import { openArchivedLog, type ArchivedLog } from './archived-log.ts';

/** A log, its archive, and the read model of it, which projectors keep folded. */
export type ArchivistTest = AsyncDisposable & {
  store: ArchivedLog;
  views: Views & StoreMaintenance;
  dependencies: ArchiveRunDependencies;
  /** Resolves once the read model has all that is stored. */
  untilFolded(): Promise<void>;
  /** Ends and starts the projectors. */
  stopProjectors(): Promise<void>;
  startProjectors(): void;
};

export async function openArchivistTest(): Promise<ArchivistTest> {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openArchivedLog());
  const views = stack.use(createMemoryViews());
  const shared = stack.use(await withSharedSubscription(store.log));
  let projecting = project(shared, views);
  stack.defer(() => projecting[Symbol.asyncDispose]());
  const parts = stack.move();
  return {
    store,
    views,
    dependencies: {
      context: createCommandContext(store.eventStore, Date.now),
      records: store.logRecords,
      files: store.files,
      signer,
      truncation: store.truncation,
      views,
    },
    untilFolded: () => untilFolded(store.log, views),
    stopProjectors: async () => projecting[Symbol.asyncDispose](),
    startProjectors() {
      projecting = project(shared, views);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

function project(log: EventStore, views: Views): AsyncDisposable {
  const projectors = allProjections.map((projection) => startProjector(projection, log, views));
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(projectors.map((one) => one.stop()));
    },
  };
}

async function untilFolded(log: EventStore, views: Views): Promise<void> {
  const end = await log.lastSequence();
  for (const projection of allProjections) await untilCheckpoint(projection, views, end);
}

/** All views of all projections, with the lists that they are in. */
export async function contentOf(views: StoreMaintenance): Promise<object> {
  const content: Record<string, object> = {};
  for (const projection of allProjections) {
    const id = projectionId(projection);
    const keys = (await Array.fromAsync(views.keys(id))).flat().toSorted();
    const stored = keys.length === 0 ? [] : (await views.inspect(id, keys)).views;
    const orphans = (await Array.fromAsync(views.orphans(id))).flat();
    content[id] = { views: keys.map((key, at) => [key, stored[at]]), orphans };
  }
  return content;
}

/** What a rebuild from the log gives. */
export async function rebuilt(log: EventStore): Promise<object> {
  await using fresh = createMemoryViews();
  await using shared = await withSharedSubscription(log);
  await using _ = project(shared, fresh);
  await untilFolded(log, fresh);
  return contentOf(fresh);
}
