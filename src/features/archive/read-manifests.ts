import type { ArchiveState } from '#events/archive/archive.ts';
import type { ArchiveFiles } from './archive-files.ts';
import {
  CorruptSegment,
  genesisHash,
  readManifest,
  segmentNumbers,
  sha256Of,
  type SealedManifest,
  type SegmentManifest,
} from './manifest.ts';
import { signerOf } from './signature.ts';

const READS_AT_ONCE = 16;

/** A manifest that was verified, with the hash of its file and the key that signed it. */
export type TrustedManifest = { manifest: SegmentManifest; sha256: string; signer: string };

type ManifestSource = {
  names: readonly string[];
  /** Manifests that are not read again: a head has proved them, or the caller verified them. */
  known: readonly TrustedManifest[];
  log: string | null;
  /** What the event store says of the archive's end; null: nothing. */
  head: ArchiveState | null;
  /** The key of the process that seals; null: nothing beyond the head is read. */
  ownSigner: string | null;
};

/**
 * The manifests of all segments, in order, each of them verified: its signature, that it follows
 * the one before, and that the last one is the event store's, which proves all before it. What is
 * beyond that was sealed by a run that has not ended: only the process that seals takes it.
 * @throws CorruptSegment if one is missing, malformed, or not what was sealed
 */
export async function readManifests(
  files: ArchiveFiles,
  { names, known, log, head, ownSigner }: ManifestSource,
): Promise<TrustedManifest[]> {
  const numbers = segmentNumbers(names);
  const missing = numbers.findIndex((number, at) => number !== at + 1);
  if (missing !== -1) throw new CorruptSegment(missing + 1, null, 'the manifest is missing');
  const end = head === null || ownSigner !== null ? numbers.length : head.segment;
  if (head !== null && numbers.length < head.segment)
    throw new CorruptSegment(numbers.length + 1, null, `the manifest is missing: ${sealed(head)}`);
  const trusted = known.slice(0, end);
  while (trusted.length < end) {
    const next = numbers.slice(trusted.length, Math.min(end, trusted.length + READS_AT_ONCE));
    const read = await Promise.all(next.map((number) => readManifest(files, number)));
    for (const one of read) trusted.push(await verified(one, trusted.at(-1) ?? null, log));
  }
  if (head !== null) requireHead(trusted, head, ownSigner);
  return trusted;
}

const sealed = ({ segment }: ArchiveState) => `the event store knows of ${segment} segments`;

/** @throws CorruptSegment for a manifest that was altered or does not follow the one before */
async function verified(
  { manifest, file, signature }: SealedManifest,
  before: TrustedManifest | null,
  log: string | null,
): Promise<TrustedManifest> {
  const fail = (problem: string) => new CorruptSegment(manifest.number, null, problem);
  const signer = await signerOf(JSON.stringify(manifest), signature);
  if (signer === null) throw fail('the manifest was altered: its signature does not match');
  const [problem] = linkProblems(manifest, before, log);
  if (problem !== undefined) throw fail(problem);
  return { manifest, sha256: sha256Of(file), signer };
}

/**
 * Why a manifest is not the next one; empty: it is.
 * @param before null: it must be the first
 */
export function linkProblems(
  manifest: SegmentManifest,
  before: Pick<TrustedManifest, 'manifest' | 'sha256'> | null,
  log: string | null,
): string[] {
  const wantedLog = log ?? before?.manifest.log ?? manifest.log;
  const prev = before?.manifest.tip ?? genesisHash(wantedLog);
  const problems: string[] = [];
  if (manifest.log !== wantedLog) problems.push(`it is of the event store ${manifest.log}`);
  if (manifest.previous !== (before?.sha256 ?? null))
    problems.push('it does not follow the manifest before');
  if (manifest.first_prev !== prev) problems.push('its lines do not follow the segment before');
  if (manifest.first_sequence <= (before?.manifest.last_sequence ?? 0))
    problems.push('its sequences do not follow those of the segment before');
  return problems;
}

/** @throws CorruptSegment */
function requireHead(
  trusted: readonly TrustedManifest[],
  head: ArchiveState,
  ownSigner: string | null,
): void {
  const { segment, manifestSha256 } = head;
  if (trusted[segment - 1]?.sha256 !== manifestSha256)
    throw new CorruptSegment(
      segment,
      null,
      'the manifest is not the one that the event store names',
    );
  const foreign = trusted
    .slice(segment)
    .find(({ signer }) => signer !== ownSigner && signer !== head.signer);
  if (foreign !== undefined)
    throw new CorruptSegment(
      foreign.manifest.number,
      null,
      `the manifest is signed by the key ${foreign.signer}, not by ${head.signer}`,
    );
}
