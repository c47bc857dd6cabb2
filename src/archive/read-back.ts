import { createHash } from 'node:crypto';
import type { ArchiveFiles } from './archive-files.ts';
import { checkLine, decompressLines } from './frames.ts';
import { CorruptSegment, dataName, indexName, sha256Of, type SegmentManifest } from './manifest.ts';
import { ahead, cut } from './pipeline.ts';
import { FrameTable, type Frame } from './segment-index.ts';

/** Frames that are decompressed at once: more than cores, so that none is idle. */
const FRAMES_AT_ONCE = 4;

/** `readBack` of an archive's files, in this thread or in another. @throws CorruptSegment */
export type ReadBack = (manifest: SegmentManifest) => Promise<void>;

/**
 * Reads a segment's files as they are stored now, and checks both hashes, each frame and the chain.
 * @throws CorruptSegment, FileMissing
 */
export async function readBack(files: ArchiveFiles, manifest: SegmentManifest): Promise<void> {
  const { number } = manifest;
  const fail = (line: number | null, problem: string, cause?: unknown) =>
    new CorruptSegment(number, line, `read back, ${problem}`, cause);
  const index = await files.read(indexName(number));
  if (sha256Of(index) !== manifest.index_sha256)
    throw fail(null, 'the index differs from what was written');
  const table = new FrameTable(number, index);
  const frames = Array.from({ length: table.frames }, (_, at): Frame => table.frame(at));
  const sha256 = createHash('sha256');
  let at = 0;
  const pieces = cut(
    files.stream(dataName(number)),
    frames.map(({ length }) => length),
  );
  const decompressed = ahead(pieces, FRAMES_AT_ONCE, async (piece) => {
    const frame = frames[at++];
    sha256.update(piece);
    if (frame === undefined) throw fail(null, 'the data has more bytes than were written');
    return decompressLines(piece, frame.rawLength).catch((error: unknown) => {
      throw fail(frame.firstLine, 'the frame cannot be decompressed', error);
    });
  });
  let [prev, records] = [manifest.first_prev, 0];
  for await (const lines of decompressed)
    for (let start = 0; start < lines.length;) {
      records += 1;
      const line = checkLine(lines, start, prev);
      if (line.problem !== null) throw fail(records, line.problem);
      prev = line.hash;
      start = line.end;
    }
  if (sha256.digest('hex') !== manifest.data_sha256 || prev !== manifest.tip)
    throw fail(null, 'the data differs from what was written');
  if (records !== manifest.records) throw fail(null, `it has ${records} records`);
}
