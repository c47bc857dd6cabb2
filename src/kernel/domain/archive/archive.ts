import type { ArchiveEvent, ArchiveState } from '#events/archive/archive.ts';

/**
 * The archive ends with this segment now; none if that, or a later segment, is recorded: its end
 * never goes back.
 */
export function decideSealed(head: ArchiveState, archive: ArchiveState | null): ArchiveEvent[] {
  if (archive !== null && archive.segment >= head.segment) return [];
  return [{ type: 'archive.sealed', data: head }];
}

/** @throws RangeError for an event before `sealed`, which no valid history contains. */
export function evolveArchive(archive: ArchiveState | null, event: ArchiveEvent): ArchiveState {
  if (event.type === 'archive.sealed') return { ...event.data };
  if (archive === null)
    throw new RangeError(`${event.type} before archive.sealed: the history is incomplete`);
  return archive;
}
