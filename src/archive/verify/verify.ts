import { FileMissing, type ArchiveFiles } from '../archive-files.ts';
import { lookupFindings } from './verify-lookups.ts';
import {
  CorruptSegment,
  genesisHash,
  readManifest,
  segmentNumbers,
  sha256Of,
  type SealedManifest,
} from '../manifest.ts';
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
  let before = first === 1 ? null : await readOrReport(files, first - 1, verdict.findings);
  let isBeforeKnown = first === 1 || before !== null;
  for (let number = first; number <= last; number += 1) {
    const sealed = await readOrReport(files, number, verdict.findings);
    verdict.segments += 1;
    if (sealed !== null) {
      const links = isBeforeKnown ? linkProblems(sealed, before, options.log ?? null) : [];
      const problems = [...(await signatureProblems(sealed, options.signer)), ...links];
      const found = problems.map((problem) => ({ segment: number, line: null, problem }));
      verdict.findings.push(...found, ...(await verifyFiles(files, sealed.manifest)));
      verdict.records += sealed.manifest.records;
    }
    isBeforeKnown = sealed !== null;
    before = sealed;
  }
  const end = before?.manifest.last_sequence ?? 0;
  const { endSequence = 0 } = options;
  if (end < endSequence)
    verdict.findings.push({
      segment: last + 1,
      line: null,
      problem: `the archive ends with the sequence ${end}, not ${endSequence}`,
    });
  // A lookup is compared with the indexes, which have to be right for that.
  const isAll = first === 1 && last === segmentNumbers(names).length;
  if (verdict.findings.length === 0 && isAll)
    verdict.findings.push(...(await presentLookupFindings(files, last, names)));
  return verdict;
}

/** How often the lookups are looked for again. */
const LOOKS_MAX = 5;

/** A run of the archivist merges lookups meanwhile, and removes those that it has merged. */
async function presentLookupFindings(
  files: ArchiveFiles,
  segments: number,
  listed: readonly string[],
): Promise<Finding[]> {
  let names = listed;
  for (let look = 1; ; look += 1)
    try {
      return await lookupFindings(files, segments, names);
    } catch (error) {
      if (!(error instanceof FileMissing) || look === LOOKS_MAX) throw error;
      names = await files.list();
    }
}

async function readOrReport(
  files: ArchiveFiles,
  segment: number,
  findings: Finding[],
): Promise<SealedManifest | null> {
  try {
    return await readManifest(files, segment);
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

/** @param before null: the segment must be the first */
function linkProblems(
  { manifest }: SealedManifest,
  before: SealedManifest | null,
  log: string | null,
): string[] {
  const wantedLog = log ?? before?.manifest.log ?? manifest.log;
  const previous = before === null ? null : sha256Of(before.file);
  const prev = before?.manifest.tip ?? genesisHash(wantedLog);
  const problems: string[] = [];
  if (manifest.log !== wantedLog) problems.push(`it is of the event store ${manifest.log}`);
  if (manifest.previous !== previous) problems.push('it does not follow the manifest before');
  if (manifest.first_prev !== prev) problems.push('its lines do not follow the segment before');
  if (manifest.first_sequence <= (before?.manifest.last_sequence ?? 0))
    problems.push('its sequences do not follow those of the segment before');
  return problems;
}
