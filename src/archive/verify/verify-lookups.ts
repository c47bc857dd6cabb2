import type { ArchiveFiles } from '../archive-files.ts';
import { readEntries, tableOf, tablesOf, type EntryTable } from '../lookup-files.ts';
import { ENTRY_BYTES, mixed } from '../segment-index.ts';
import type { Finding } from './verify-segment.ts';

/** Lookup files whose entries differ from those of the indexes that they were merged from. */
export async function lookupFindings(
  files: ArchiveFiles,
  segments: number,
  names: readonly string[],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const table of await tablesOf(files, segments, names)) {
    if (table.first === table.last) continue;
    const wanted = emptySummary();
    for (let segment = table.first; segment <= table.last; segment += 1)
      await summarize(files, await tableOf(files, { first: segment, last: segment }), wanted);
    const found = emptySummary();
    const isSorted = await summarize(files, table, found);
    if (isSorted && found.count === wanted.count && found.sum === wanted.sum) continue;
    const problem = `${table.name} differs from the indexes; it can be made anew from them`;
    findings.push({ segment: table.first, line: null, problem });
  }
  return findings;
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
  table: EntryTable,
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
