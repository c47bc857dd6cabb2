import { sleep } from '#src/kernel/async/sleep.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { openArchive, type Archive, type ArchiveOptions } from './archive.ts';
import { FileMissing, type ArchiveFiles } from './archive-files.ts';
import { CorruptSegment } from './manifest.ts';

/** Opens the archive; a later call after a success returns the same one. */
export type OpenArchive = () => Promise<Archive>;

/**
 * Opens the archive at the first call, and again after a failure. A reader gets `Unavailable` while
 * the archive's files do not answer, and `CorruptSegment` for what is missing or altered.
 */
export function openOnce(
  files: () => Promise<ArchiveFiles>,
  options: ArchiveOptions & Required<Pick<ArchiveOptions, 'readHead'>>,
): OpenArchive {
  let opening: Promise<Archive> | null = null;
  return () => {
    opening ??= files()
      .then((found) => openArchive(withOutages(found), options))
      .catch((error: unknown) => {
        opening = null;
        throw error instanceof CorruptSegment ? error : outage(error);
      });
    return opening;
  };
}

function withOutages(files: ArchiveFiles): ArchiveFiles {
  return {
    ...files,
    list: () => files.list().catch(rethrow),
    size: (name) => files.size(name).catch(rethrow),
    read: (name, range) => files.read(name, range).catch(rethrow),
    async *stream(name) {
      try {
        yield* files.stream(name);
      } catch (error) {
        rethrow(error);
      }
    },
  };
}

function rethrow(error: unknown): never {
  throw error instanceof FileMissing ? error : outage(error);
}

function outage(error: unknown): Unavailable {
  return error instanceof Unavailable ? error : new Unavailable('event-log', error);
}

/** How far the lists of sessions reach back. */
export type ArchiveBorder = {
  /**
   * Sessions that ended before this time (ISO 8601 UTC) are in the archive alone; null: none are,
   * as far as is known.
   */
  completeFrom: () => string | null;
} & AsyncDisposable;

const LOOK_EVERY_MS = 5_000;

/** Looks from time to time how far the log has been truncated. */
export function watchArchiveBorder(
  eventStore: Pick<EventStore, 'info'>,
  open: OpenArchive,
): ArchiveBorder {
  const stop = new AbortController();
  const { signal } = stop;
  let seen = 1;
  let time: string | null = null;

  async function look(): Promise<void> {
    const { firstSequence } = await eventStore.info();
    if (firstSequence === seen) return;
    const archive = await open();
    await archive.refresh();
    const end = archive.endTime();
    time = end === null ? null : new Date(end).toISOString();
    seen = firstSequence;
  }
  async function watch(): Promise<void> {
    while (!signal.aborted) {
      // Event store or archive is unavailable: the next look finds the border.
      await look().catch(() => undefined);
      await sleep(untilTickOf(LOOK_EVERY_MS), signal);
    }
  }
  const watching = watch();
  return {
    completeFrom: () => time,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}
