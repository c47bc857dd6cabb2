import { FileMissing, type ArchiveFiles } from '../archive-files.ts';
import { lookupFindings } from './verify-lookups.ts';
import type { ArchiveState } from '#events/archive/archive.ts';
import {
  CorruptSegment,
  readManifest,
  segmentNumbers,
  sha256Of,
  type SealedManifest,
} from '../manifest.ts';
import { linkProblems, type TrustedManifest } from '../read-manifests.ts';
import { signerOf } from '../signature.ts';
import { verifyFiles, type Finding } from './verify-segment.ts';

export type VerifyOptions = {
  /** Fingerprint of the key that must have signed each manifest. */
  signer: string;
  /** Id of the event store; without it, the first manifest names it. */
  log?: string;
  /** Segments to verify; default: all. */
  first?: number;
  last?: number;
  /** A sequence that the archive must reach: it cannot prove itself that its end is not missing. */
  endSequence?: number;
  /** What the event store says of the archive's end; null or absent: nothing. */
  head?: ArchiveState | null;
};

export type ArchiveVerdict = {
  segments: number;
  records: number;
  /** Empty: the segments are whole and unaltered. Of each file the first fault is named. */
  findings: Finding[];
};

/**
 * Verifies segments from their files alone: signatures, the chain of manifests and of all lines,
 * the hash of each file, the order of sequences, and that the index and the lookup files say what
 * the data says.
 */
export async function verifyArchive(
  files: ArchiveFiles,
  options: VerifyOptions,
): Promise<ArchiveVerdict> {
  const names = await files.list();
  const { first = 1, last = segmentNumbers(names).at(-1) ?? 0 } = options;
  const verdict: ArchiveVerdict = { segments: 0, records: 0, findings: [] };
  const trusted: TrustedManifest[] = [];
  let before = first === 1 ? null : await readOrReport(files, first - 1, verdict.findings);
  let isBeforeKnown = first === 1 || before !== null;
  for (let number = first; number <= last; number += 1) {
    const sealed = await readOrReport(files, number, verdict.findings);
    verdict.segments += 1;
    if (sealed !== null) {
      const { manifest } = sealed;
      const links = isBeforeKnown ? linkProblems(manifest, before, options.log ?? null) : [];
      const problems = [
        ...(await signatureProblems(sealed, options.signer)),
        ...links,
        ...headProblems(sealed, options.head ?? null),
      ];
      const found = problems.map((problem) => ({ segment: number, line: null, problem }));
      verdict.findings.push(...found, ...(await verifyFiles(files, sealed.manifest)));
      verdict.records += manifest.records;
      trusted.push({ manifest, sha256: sealed.sha256, signer: options.signer });
    }
    isBeforeKnown = sealed !== null;
    before = sealed;
  }
  const end = before?.manifest.last_sequence ?? 0;
  const { endSequence = 0, head } = options;
  const isCut = options.last === undefined && last < (head?.segment ?? 0);
  if (isCut)
    verdict.findings.push({
      segment: last + 1,
      line: null,
      problem: `the event store knows of ${head?.segment} segments`,
    });
  else if (end < endSequence)
    verdict.findings.push({
      segment: last + 1,
      line: null,
      problem: `the archive ends with the sequence ${end}, not ${endSequence}`,
    });
  // A lookup is compared with the indexes, which have to be right for that.
  const isAll = first === 1 && last === segmentNumbers(names).length;
  if (verdict.findings.length === 0 && isAll)
    verdict.findings.push(...(await presentLookupFindings(files, trusted, names)));
  return verdict;
}

/** How often the lookups are looked for again. */
const LOOKS_MAX = 5;

/** A run of the archivist merges lookups meanwhile, and removes those that it has merged. */
async function presentLookupFindings(
  files: ArchiveFiles,
  manifests: readonly TrustedManifest[],
  listed: readonly string[],
): Promise<Finding[]> {
  let names = listed;
  for (let look = 1; ; look += 1)
    try {
      return await lookupFindings(files, manifests, names);
    } catch (error) {
      if (!(error instanceof FileMissing) || look === LOOKS_MAX) throw error;
      names = await files.list();
    }
}

type Read = SealedManifest & { sha256: string };

async function readOrReport(
  files: ArchiveFiles,
  segment: number,
  findings: Finding[],
): Promise<Read | null> {
  try {
    const sealed = await readManifest(files, segment);
    return { ...sealed, sha256: sha256Of(sealed.file) };
  } catch (error) {
    if (!(error instanceof CorruptSegment)) throw error;
    const problem = error.message.replace(/^segment \d+: /, '');
    findings.push({ segment, line: null, problem });
    return null;
  }
}

async function signatureProblems(
  { manifest, signature }: SealedManifest,
  signer: string,
): Promise<string[]> {
  const found = await signerOf(JSON.stringify(manifest), signature);
  if (found === null) return ['the manifest was altered: its signature does not match'];
  return found === signer ? [] : [`the manifest is signed by the key ${found}, not by ${signer}`];
}

/** A manifest that is another one than the event store has recorded. */
function headProblems({ manifest, sha256 }: Read, head: ArchiveState | null): string[] {
  if (head?.segment !== manifest.number || head.manifestSha256 === sha256) return [];
  return ['the manifest is not the one that the event store names'];
}
