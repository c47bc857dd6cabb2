import { isDeepStrictEqual } from 'node:util';
import { ARCHIVE, type ArchiveState } from '#events/archive/archive.ts';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import { type Archive, openArchive } from '#src/features/archive/archive.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { createHeadReader } from '#src/features/archive/head.ts';
import { mergeLookups } from '#src/features/archive/lookups/lookup-files.ts';
import type { SegmentManifest } from '#src/features/archive/manifest.ts';
import type { ReadBack } from '#src/features/archive/read-back.ts';
import { sealSegments } from '#src/features/archive/segment-writer.ts';
import type { Signer } from '#src/features/archive/signature.ts';
import { verifyArchive } from '#src/features/archive/verify/verify.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { handleCommand, type CommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { decideSealed } from '#src/kernel/domain/archive/archive.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';
import type { RecordStream } from '#src/kernel/event-store/record-bytes.ts';
import type { LogTruncation } from '#src/kernel/event-store/truncation.ts';
import { createOpenAggregates, type OpenAggregates } from './open-aggregates.ts';

/** What a run of the archivist needs. */
export type ArchiveRunDependencies = {
  /**
   * On the log with its archive: a state of another version is folded from the whole history.
   */
  context: CommandContext;
  /** The records of the log. */
  records: RawRecords & RecordStream;
  files: ArchiveFiles;
  signer: Signer;
  /** Default: in this thread. */
  readBack?: ReadBack;
  truncation: LogTruncation;
  views: Pick<Views, 'checkpoint' | 'waitForCheckpoint'> & Pick<StoreMaintenance, 'removeUpTo'>;
  /** Called with each segment once it is sealed. */
  onSealed?: (manifest: SegmentManifest) => void;
};

/** What a run sealed. */
type Sealed = { segments: number; records: number; sessions: number };

/** What a run did. */
export type ArchiveRun = Sealed & {
  /** Aggregates that were still open, and whose state was stored again behind the archive's end. */
  carriedForward: number;
  /** The log begins after this sequence; 0: nothing has been taken out of it. */
  truncatedTo: number;
  /** Views of the read model that were removed. */
  viewsRemoved: number;
  /** Why the log keeps events that are archived; null: it does not. */
  heldBack: string | null;
};

const ACTOR = 'archivist/archive';
/** Of a log that has more events than it may, this part of what it may is kept: runs are few. */
const KEPT_OF_MAX = 0.8;
/** For the projections to fold what was carried forward. */
const FOLDED_WITHIN_MS = 10_000;

/** What a run archives. Times are ISO 8601 UTC. */
export type Retention = {
  /** What was stored before this time. */
  before: string;
  /** And, if the event store has more events than this, the oldest of them. */
  eventsMax: number;
  /** For their number alone, only events that were stored before this time are archived. */
  excessBefore: string;
};

/** The archive cannot go on from the log: events are missing between, or it is of another log. */
export class ArchiveMismatch extends Error {
  override readonly name = 'ArchiveMismatch';
}

/**
 * Archives the oldest events, as the retention says: seals them into segments, then takes them
 * out of the log and the read model. Each step may be the last one before a kill: the next run
 * finishes what this one began. Nothing is taken out before it was read back from its segment.
 *
 * What an earlier run sealed, and what is still in the log, is verified again and finished first: a
 * step that is refused at each attempt would add a small segment each time.
 *
 * 1. Seal what the archive does not have.
 * 2. Record the archive's end in the log: readers of the archive take nothing else for it.
 * 3. Merge lookup files, and remove those that no reader needs from there on.
 * 4. Carry forward what is still open: organizations, ledgers, live servers, running browsers.
 * 5. Purge the log and PUBLIC up to the archive's end, unless somebody has not read so far, or the
 *    read model does not have what was carried forward: its views would be taken for archived ones.
 * 6. Remove views whose last event is archived.
 * @throws ArchiveMismatch, CorruptSegment, SegmentTaken, Unavailable
 */
export async function runArchive(
  dependencies: ArchiveRunDependencies,
  retention: Retention,
  signal: AbortSignal,
): Promise<ArchiveRun> {
  const { context, files, signer } = dependencies;
  const readHead = createHeadReader(context.eventStore);
  const archive = await openArchive(files, { readHead, signer: signer.fingerprint });
  const open = createOpenAggregates();
  await requireContinuity(dependencies, archive);
  await addSealed(dependencies, archive, open);
  // Before events are carried forward: those stay.
  const upTo = await oldUpTo(context.eventStore, retention);
  const finished = await finish(dependencies, { archive, open, signal });
  const sealed = await seal(dependencies, { archive, open, signal }, upTo);
  if (sealed.segments === 0) return { ...sealed, ...finished };
  const run = await finish(dependencies, { archive, open, signal });
  run.carriedForward += finished.carriedForward;
  run.viewsRemoved += finished.viewsRemoved;
  return { ...sealed, ...run };
}

/** What a run works on. */
type Work = { archive: Archive; open: OpenAggregates; signal: AbortSignal };

/** What follows once segments are sealed: steps 2 to 6. */
async function finish(
  dependencies: ArchiveRunDependencies,
  { archive, open, signal }: Work,
): Promise<Omit<ArchiveRun, keyof Sealed>> {
  const { context, files, signer, truncation, views } = dependencies;
  const run = { carriedForward: 0, viewsRemoved: 0, heldBack: null };
  const upTo = archive.endSequence();
  if (upTo === 0) return { ...run, truncatedTo: 0 };
  signal.throwIfAborted();
  await recordHead(context, archive);
  signal.throwIfAborted();
  await mergeLookups({ files, manifests: archive.trusted(), signer });
  const { firstSequence } = await context.eventStore.info();
  if (upTo >= firstSequence) {
    const heldBack = await whoHoldsBack(dependencies, upTo);
    if (heldBack !== null) return { ...run, heldBack, truncatedTo: firstSequence - 1 };
    for (const aggregate of open.all()) {
      signal.throwIfAborted();
      const outcome = await carryForward(context, aggregate, upTo, newMetadata(ACTOR));
      if (outcome === 'carried') run.carriedForward += 1;
    }
    const behind = await whoIsBehind(dependencies);
    if (behind !== null) return { ...run, heldBack: behind, truncatedTo: firstSequence - 1 };
    signal.throwIfAborted();
    await truncation.truncate(upTo);
  }
  await truncation.truncatePublic(upTo);
  // Also after a kill, and after a rebuild that began before the log was truncated.
  for (const projection of allProjections)
    run.viewsRemoved += await views.removeUpTo(projectionId(projection), upTo);
  return { ...run, truncatedTo: upTo };
}

/**
 * The archive must end where the log begins, or hold the log's own events.
 * @throws ArchiveMismatch
 */
async function requireContinuity(
  { context, records }: ArchiveRunDependencies,
  archive: Archive,
): Promise<void> {
  const end = archive.endSequence();
  const { id, firstSequence, lastSequence } = await context.eventStore.info();
  if (end < firstSequence - 1)
    throw new ArchiveMismatch(
      `the archive ends at ${end}, and the event store begins at ${firstSequence}`,
    );
  const sealedFrom = archive.segments().at(-1)?.log ?? id;
  // The log begins behind the archive: no event is in both, and only the ids can be compared.
  if (end < firstSequence && sealedFrom === id) return;
  if (end < firstSequence)
    throw new ArchiveMismatch(`the archive is of the event store ${sealedFrom}, this one is ${id}`);
  const range = { after: end - 1, upTo: end, organizationId: null };
  const archived = await firstOf(archive.records.read(range));
  const stored = end > lastSequence ? null : await firstOf(records.read(range));
  if (!isDeepStrictEqual(archived, stored))
    throw new ArchiveMismatch(`event ${end} of the archive is not that of the event store`);
}

async function firstOf(batches: AsyncIterable<RawRecord[]>): Promise<RawRecord | null> {
  for await (const [record] of batches) return record ?? null;
  return null;
}

/** Verifies the segments that the log still has, and notes what is open in them. */
async function addSealed(
  { context, files, signer }: ArchiveRunDependencies,
  archive: Archive,
  open: OpenAggregates,
): Promise<void> {
  const { firstSequence } = await context.eventStore.info();
  const left = archive.segments().filter((one) => one.last_sequence >= firstSequence);
  const [first, last] = [left[0]?.number, left.at(-1)?.number];
  if (first === undefined || last === undefined) return;
  const { findings } = await verifyArchive(files, { signer: signer.fingerprint, first, last });
  const [finding] = findings;
  if (finding !== undefined)
    throw new ArchiveMismatch(`segment ${finding.segment} is not sound: ${finding.problem}`);
  const range = { after: firstSequence - 1, upTo: archive.endSequence(), organizationId: null };
  for await (const records of archive.records.read(range)) open.add(records);
}

/** The last sequence of what is not to be kept; 0: nothing. */
async function oldUpTo(eventStore: EventStore, retention: Retention): Promise<number> {
  const { lastSequence } = await eventStore.info();
  const old = await eventStore.sequenceBefore(retention.before);
  const oldest = Math.max(old, await excessUpTo(eventStore, retention));
  // The newest event stays, so that the log's end is known.
  return Math.min(oldest, lastSequence - 1);
}

/** Seals what the archive does not have up to a sequence: step 1. */
async function seal(
  { context, records, files, signer, readBack, onSealed }: ArchiveRunDependencies,
  { archive, open, signal }: Work,
  upTo: number,
): Promise<Sealed> {
  const done = { segments: 0, records: 0, sessions: 0 };
  const after = archive.endSequence();
  if (upTo <= after) return done;
  const log = await context.eventStore.info();
  const source = untilAborted(open.watch(records.readAll({ after, upTo })), signal);
  const sealedFrom = archive.segments().at(-1)?.log ?? log.id;
  const options = {
    files,
    log: sealedFrom,
    signer,
    known: archive.trusted(),
    ...(readBack === undefined ? {} : { readBack }),
  };
  for await (const manifest of sealSegments(source, options)) {
    done.segments += 1;
    done.records += manifest.records;
    done.sessions += manifest.sessions;
    onSealed?.(manifest);
  }
  await archive.refresh();
  return done;
}

/** Records where the archive ends, if the log does not know. */
async function recordHead(context: CommandContext, archive: Archive): Promise<void> {
  const last = archive.trusted().at(-1);
  if (last === undefined) return;
  const { manifest, sha256: manifestSha256, signer } = last;
  const { number: segment, last_sequence: lastSequence } = manifest;
  const head = { segment, lastSequence, manifestSha256, signer };
  const decide = (state: ArchiveState | null) => decideSealed(head, state);
  await handleCommand<'archive'>(context, ARCHIVE, decide, newMetadata(ACTOR));
}

/** The last sequence of what an event store has too much and may lose; 0: nothing. */
export async function excessUpTo(
  eventStore: Pick<EventStore, 'info' | 'sequenceBefore'>,
  { eventsMax, excessBefore }: Omit<Retention, 'before'>,
): Promise<number> {
  const { firstSequence, lastSequence } = await eventStore.info();
  if (lastSequence - firstSequence + 1 <= eventsMax) return 0;
  const kept = Math.floor(KEPT_OF_MAX * eventsMax);
  return Math.min(lastSequence - kept, await eventStore.sequenceBefore(excessBefore));
}

/** A segment takes long to write: it is given up when the signal aborts. @throws its reason */
async function* untilAborted<Batch>(
  batches: AsyncIterable<Batch>,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, void> {
  signal.throwIfAborted();
  for await (const batch of batches) {
    yield batch;
    signal.throwIfAborted();
  }
}

/**
 * What keeps events up to the sequence in the log: a reader that has not come so far yet. Null if
 * nothing does.
 * @param views null: the read model is not asked
 */
export async function whoHoldsBack(
  { truncation, views }: { truncation: LogTruncation; views: Pick<Views, 'checkpoint'> | null },
  upTo: number,
): Promise<string | null> {
  const held = await truncation.heldBackTo();
  if (held !== null && held.sequence < upTo) return `${held.by} is at event ${held.sequence}`;
  if (views === null) return null;
  for (const projection of allProjections) {
    const id = projectionId(projection);
    const checkpoint = await views.checkpoint(id);
    if (checkpoint < upTo) return `the read model ${id} is at event ${checkpoint}`;
  }
  return null;
}

/** Which projection has not folded all events that are stored now, after a while; null: none. */
async function whoIsBehind({ context, views }: ArchiveRunDependencies): Promise<string | null> {
  const { lastSequence } = await context.eventStore.info();
  for (const projection of allProjections) {
    const id = projectionId(projection);
    if (!(await views.waitForCheckpoint(id, lastSequence, FOLDED_WITHIN_MS)))
      return `the read model ${id} is at event ${await views.checkpoint(id)}`;
  }
  return null;
}
