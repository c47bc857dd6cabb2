import type { ArchiveFiles } from '../archive-files.ts';
import { BLOCK_ENTRIES, type ProvenEntries } from '../read-index.ts';
import { lookupName, sumsName, type Range } from './lookup-names.ts';
import { CorruptSegment } from '../manifest.ts';
import { SUM_BYTES } from '../segment-index.ts';
import { parseSigned, signedFile, signerOf, type Signer } from '../signature.ts';

/** What the signed file beside a lookup file says. */
type LookupSums = Range & {
  format: 'bss-lookup-1';
  log: string;
  entries: number;
  /** SHA-256 of each block of entries, one behind the other, in base64. */
  blocks: string;
};

/** Writes the hashes of a lookup file's blocks, signed: a reader reads few of the blocks. */
export async function writeLookupSums(
  files: ArchiveFiles,
  range: Range,
  { log, signer, entries, sums }: { log: string; signer: Signer; entries: number; sums: Buffer },
): Promise<void> {
  const { first, last } = range;
  const blocks = sums.toString('base64');
  const value: LookupSums = { format: 'bss-lookup-1', log, first, last, entries, blocks };
  await files.write(sumsName(range), await signedFile('lookup', value, signer));
}

/**
 * The entries of a lookup file with the hashes of its blocks.
 * @param isTrusted whether a key is one that signed the archive
 * @throws CorruptSegment, FileMissing
 */
export async function readLookupSums(
  files: ArchiveFiles,
  range: Range,
  { log, isTrusted }: { log: string; isTrusted: (signer: string) => boolean },
): Promise<ProvenEntries> {
  const file = await files.read(sumsName(range));
  const fail = (problem: string, cause?: unknown) =>
    new CorruptSegment(range.first, null, problem, { cause, file: sumsName(range) });
  let parsed: ReturnType<typeof parseSigned>;
  try {
    parsed = parseSigned('lookup', file);
  } catch (error) {
    throw fail('the hashes of a lookup file are not such', error);
  }
  const signer = await signerOf(JSON.stringify(parsed.value), parsed.signature);
  if (signer === null || !isTrusted(signer))
    throw fail('the hashes of a lookup file were altered: no key of the archive signed them');
  const { format, first, last, entries, blocks, log: foundLog } = parsed.value as LookupSums;
  const sums = Buffer.from(blocks, 'base64');
  const isOwn =
    format === 'bss-lookup-1' && foundLog === log && first === range.first && last === range.last;
  if (!isOwn || sums.length !== Math.ceil(entries / BLOCK_ENTRIES) * SUM_BYTES)
    throw fail('the hashes are those of another lookup file');
  return { name: lookupName(range), offset: 0, entries, sums };
}
