import type { ArchiveFiles } from './archive-files.ts';
import { CorruptSegment, readManifest, segmentNumbers, type SegmentManifest } from './manifest.ts';

const READS_AT_ONCE = 16;

type ManifestSource = {
  names: readonly string[];
  /** Manifests that were read before: they never change. */
  known: readonly SegmentManifest[];
  log: string | null;
};

/**
 * The manifests of all segments, in order. Signatures are not verified.
 * @throws CorruptSegment if one is missing, malformed, or does not follow the one before
 */
export async function readManifests(
  files: ArchiveFiles,
  { names, known, log }: ManifestSource,
): Promise<SegmentManifest[]> {
  const numbers = segmentNumbers(names);
  const missing = numbers.findIndex((number, at) => number !== at + 1);
  if (missing !== -1) throw new CorruptSegment(missing + 1, null, 'the manifest is missing');
  const manifests = [...known];
  while (manifests.length < numbers.length) {
    const next = numbers.slice(manifests.length, manifests.length + READS_AT_ONCE);
    const read = await Promise.all(next.map((number) => readManifest(files, number)));
    for (const { manifest } of read) {
      requireNext(manifest, manifests.at(-1) ?? null, log);
      manifests.push(manifest);
    }
  }
  return manifests;
}

function requireNext(
  manifest: SegmentManifest,
  before: SegmentManifest | null,
  log: string | null,
): void {
  const fail = (problem: string) => new CorruptSegment(manifest.number, null, problem);
  if (manifest.log !== (log ?? before?.log ?? manifest.log))
    throw fail(`it is of the event store ${manifest.log}`);
  if (manifest.first_sequence <= (before?.last_sequence ?? 0))
    throw fail('its sequences do not follow those of the segment before');
}
