import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Archive } from '#src/features/archive/archive.ts';
import type { ArchiveFiles } from '#src/features/archive/archive-files.ts';
import { recordText } from '#src/kernel/event-store/chain.ts';
import { CorruptSegment, dataName, type SegmentManifest } from '#src/features/archive/manifest.ts';
import type { RawRecord, RawRecords } from '#src/kernel/event-store/raw-records.ts';

/** Where events are: sealed segments, and the event store for what is after them. */
export type Sources = { archive: OpenArchive | null; log: RawRecords };
export type OpenArchive = { archive: Archive; files: ArchiveFiles };

/** Sequences above `after`, up to and including `upTo`. */
export type Range = { after: number; upTo: number };

/** Files whose lines hold `record`, as the archive has them. They are removed after the turn. */
export type RecordFiles = { paths: readonly string[]; isCompressed: boolean; records: number };

/** DuckDB parses each compressed file in one thread. */
const SEGMENTS_AT_ONCE = 4;
const LOG_FILE_BYTES = 256 * 1024 * 1024;

/** Writes the records of a range to files in a folder, a few files at a time. */
export async function* recordFiles(
  { archive, log }: Sources,
  { after, upTo }: Range,
  folder: string,
): AsyncGenerator<RecordFiles, void, void> {
  if (archive !== null) yield* archiveFiles(archive, { after, upTo }, folder);
  const archived = archive?.archive.endSequence() ?? 0;
  yield* logFiles(log, { after: Math.max(after, archived), upTo }, folder);
}

async function* archiveFiles(
  { archive, files }: OpenArchive,
  { after, upTo }: Range,
  folder: string,
): AsyncGenerator<RecordFiles, void, void> {
  const segments = archive
    .segments()
    .filter(({ first_sequence: first, last_sequence: last }) => last > after && first <= upTo);
  for (let at = 0; at < segments.length; at += SEGMENTS_AT_ONCE) {
    const group = segments.slice(at, at + SEGMENTS_AT_ONCE);
    const paths = group.map(({ number }) => join(folder, dataName(number)));
    for (const [index, manifest] of group.entries())
      await copySegment(files, manifest, paths[index] ?? '');
    const records = group.reduce((sum, segment) => sum + recordsWithin(segment, after, upTo), 0);
    yield { paths, isCompressed: true, records };
    for (const path of paths) await rm(path);
  }
}

function recordsWithin(segment: SegmentManifest, after: number, upTo: number): number {
  const { first_sequence: first, last_sequence: last } = segment;
  return Math.min(last, upTo) - Math.max(first - 1, after);
}

/** @throws CorruptSegment if the copy is not what was sealed */
async function copySegment(
  files: ArchiveFiles,
  manifest: SegmentManifest,
  path: string,
): Promise<void> {
  const { number, data_sha256: expected } = manifest;
  const digest = createHash('sha256');
  async function* hashed() {
    for await (const chunk of files.stream(dataName(number))) {
      digest.update(chunk);
      yield chunk;
    }
  }
  await pipeline(hashed, createWriteStream(path, { mode: 0o600 }));
  if (digest.digest('hex') !== expected)
    throw new CorruptSegment(number, null, 'the data is not what was sealed');
}

async function* logFiles(
  log: RawRecords,
  { after, upTo }: Range,
  folder: string,
): AsyncGenerator<RecordFiles, void, void> {
  if (after >= upTo) return;
  const path = join(folder, 'log.ndjson');
  const batches = log.read({ after, upTo, organizationId: null })[Symbol.asyncIterator]();
  for (;;) {
    const written = await writeLines(path, batches);
    if (written.records > 0) yield { paths: [path], isCompressed: false, records: written.records };
    await rm(path);
    if (written.isEnd) return;
  }
}

/** Writes batches to a file until it is large, or until there are no more. */
async function writeLines(path: string, batches: AsyncIterator<RawRecord[]>) {
  const written = { records: 0, isEnd: false };
  async function* lines() {
    for (let bytes = 0; bytes < LOG_FILE_BYTES;) {
      const { done, value } = await batches.next();
      written.isEnd = done === true;
      if (done === true) return;
      const text = value.map((record) => `{"record":${recordText(record)}}\n`).join('');
      written.records += value.length;
      bytes += text.length;
      yield text;
    }
  }
  await pipeline(lines, createWriteStream(path, { mode: 0o600 }));
  return written;
}
