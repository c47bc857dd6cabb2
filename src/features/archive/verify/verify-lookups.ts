import type { ArchiveFiles } from '../archive-files.ts';
import { openEntries, readEntries, tablesOf } from '../lookups/lookup-files.ts';
import { lookupName } from '../lookups/lookup-names.ts';
import { CorruptSegment } from '../manifest.ts';
import type { ProvenEntries } from '../read-index.ts';
import type { TrustedManifest } from '../read-manifests.ts';
import { ENTRY_BYTES, mixed } from '../segment-index.ts';
import type { Finding } from './verify-segment.ts';

/** Lookup files whose entries differ from those of the indexes that they were merged from. */
export async function lookupFindings(
  files: ArchiveFiles,
  manifests: readonly TrustedManifest[],
  names: readonly string[],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const table of tablesOf(manifests.length, names)) {
    if (table.first === table.last) continue;
    const wanted = emptySummary();
    for (let segment = table.first; segment <= table.last; segment += 1) {
      const index = await openEntries(files, { first: segment, last: segment }, manifests);
      await summarize(files, index, wanted);
    }
    const found = emptySummary();
    const problem = await problemOf(async () =>
      summarize(files, await openEntries(files, table, manifests), found),
    );
    if (problem === null && found.count === wanted.count && found.sum === wanted.sum) continue;
    const differs = `${lookupName(table)} differs from the indexes; it can be made anew from them`;
    findings.push({ segment: table.first, line: null, problem: problem ?? differs });
  }
  return findings;
}

/** Why a lookup cannot be read; null: it can, and is sorted. */
async function problemOf(summarizing: () => Promise<boolean>): Promise<string | null> {
  try {
    return (await summarizing()) ? null : 'the entries of a lookup file are not sorted';
  } catch (error) {
    if (!(error instanceof CorruptSegment)) throw error;
    return error.problem;
  }
}

/**
 * The count of entries and a sum of their hashes, which do not depend on their order: indexes are
 * read one after the other, however many.
 */
type Summary = { count: number; sum: number };

function emptySummary(): Summary {
  return { count: 0, sum: 0 };
}

/** Adds the entries of a table; false if they are not sorted. */
async function summarize(
  files: ArchiveFiles,
  table: ProvenEntries,
  summary: Summary,
): Promise<boolean> {
  let last: Buffer = Buffer.alloc(ENTRY_BYTES);
  let isSorted = true;
  for await (const chunk of readEntries(files, table))
    for (let at = 0; at < chunk.length; at += ENTRY_BYTES) {
      const entry = chunk.subarray(at, at + ENTRY_BYTES);
      if (summary.count > 0 && last.compare(entry) > 0) isSorted = false;
      last = entry;
      summary.count += 1;
      let hash = 0;
      for (let place = 0; place < ENTRY_BYTES; place += 4)
        hash = mixed(hash ^ entry.readUInt32BE(place));
      summary.sum = (summary.sum + hash) >>> 0;
    }
  return isSorted;
}
