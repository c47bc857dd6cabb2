import { vi } from 'vitest';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import type {
  ArchivistDependencies,
  ArchivistOptions,
} from '#src/features/archive/archivist/archivist.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { inBatches, recordsFrom, signer } from '#test/support/archive/archive.fixture.ts';
import { eventually } from '#test/support/projector.ts';

export const EVERY_MS = 20;
export const stored = recordsFrom(1, 700);

/** A log of 700 records, of which one more becomes old each millisecond of the test's clock. */
export function openTest() {
  const clock = { ms: 0, reads: 0 };
  const now = () => {
    clock.reads += 1;
    return clock.ms;
  };
  let firstSequence = 1;
  const eventStore = {
    ...createMemoryEventStore(),
    info: async () => ({ id: 'a-log', firstSequence, lastSequence: stored.length }),
    sequenceBefore: async (time: string) => Math.max(0, Date.parse(time)),
  };
  const logged: string[] = [];
  const note = (...[, text]: [object, string]) => logged.push(text);
  const views = {
    checkpoint: async () => stored.length,
    waitForCheckpoint: async () => true,
    removeUpTo: async () => 0,
  };
  const log = {
    info: note,
    warn: note,
    error: note,
    debug: note,
  } as unknown as ArchivistOptions['log'];
  const read = ({ after, upTo }: { after: number; upTo: number }) =>
    inBatches(stored.filter(({ sequence }) => sequence > after && sequence <= upTo));
  const dependencies: ArchivistDependencies = {
    context: createCommandContext(eventStore, now),
    records: { read, readAll: read },
    files: createMemoryFiles(),
    signer,
    truncation: {
      heldBackTo: async () => null,
      truncatePublic: async () => undefined,
      async truncate(upTo) {
        firstSequence = upTo + 1;
      },
    },
    views,
    leases: createMemoryLeases({ now: () => clock.ms }),
    now,
  };
  const archived = async () => (await openArchive(dependencies.files)).endSequence();
  const until = (isSo: () => unknown) => vi.waitUntil(isSo, eventually);
  const options = { retainEndedMs: 0, retainEventsMax: 1_000, everyMs: EVERY_MS, log };
  return { clock, logged, dependencies, options, archived, until, first: () => firstSequence };
}
