import { ARCHIVE, type ArchiveState } from '#events/archive/archive.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';

/**
 * Where the archive ends, as the event store knows it: who may write to the archive's files may not
 * write this. Null: no run of the archivist has recorded it.
 */
export type ReadHead = () => Promise<ArchiveState | null>;

/** Reads the head from the log alone: what it proves is not needed to read it. */
export function createHeadReader(eventStore: EventStore): ReadHead {
  return async () => (await loadState<'archive'>(eventStore, ARCHIVE, { fromLeader: true })).state;
}
