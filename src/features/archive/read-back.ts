import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ArchiveFiles } from './archive-files.ts';
import { decompressLines } from './frames.ts';
import { CorruptSegment, dataName, indexName, sha256Of, type SegmentManifest } from './manifest.ts';
import { ahead, cut } from './pipeline.ts';
import { FrameTable, type Frame } from './segment-index.ts';

/** Frames that are decompressed at once: more than cores, so that none is idle. */
const FRAMES_AT_ONCE = 4;

/** A segment whose data and index are written, and whose manifest is not. */
export type WrittenSegment = {
  manifest: SegmentManifest;
  /** CRC-32 of the lines of each frame, from when they were chained. */
  lineSums: readonly number[];
};

/** `readBack` of an archive's files, in this thread or in another. @throws CorruptSegment */
export type ReadBack = (segment: WrittenSegment) => Promise<void>;

/**
 * Reads a segment's files as they are stored now. Their hashes must be those of the manifest, and
 * each frame must hold the lines that were chained. What it does not do again is the chain: that
 * was made of the same lines.
 * @throws CorruptSegment, FileMissing
 */
export async function readBack(
  files: ArchiveFiles,
  { manifest, lineSums }: WrittenSegment,
): Promise<void> {
  const { number } = manifest;
  const fail = (line: number | null, problem: string, cause?: unknown) =>
    new CorruptSegment(number, line, `read back, ${problem}`, { cause });
  const index = await files.read(indexName(number));
  if (sha256Of(index) !== manifest.index_sha256)
    throw fail(null, 'the index differs from what was written');
  const table = new FrameTable(number, index);
  const frames = Array.from({ length: table.frames }, (_, at): Frame => table.frame(at));
  if (frames.length !== lineSums.length) throw fail(null, `the index has ${frames.length} frames`);
  const sha256 = createHash('sha256');
  let at = 0;
  const pieces = cut(
    files.stream(dataName(number)),
    frames.map(({ length }) => length),
  );
  const checked = ahead(pieces, FRAMES_AT_ONCE, async (piece) => {
    const [frame, sum] = [frames[at], lineSums[at]];
    at += 1;
    sha256.update(piece);
    if (frame === undefined) throw fail(null, 'the data has more bytes than were written');
    const lines = await decompressLines(piece, frame.rawLength).catch((error: unknown) => {
      throw fail(frame.firstLine, 'the frame cannot be decompressed', error);
    });
    if (crc32(lines) !== sum)
      throw fail(frame.firstLine, 'the frame has other lines than were chained');
  });
  for await (const _ of checked);
  if (at !== frames.length || sha256.digest('hex') !== manifest.data_sha256)
    throw fail(null, 'the data differs from what was written');
}
