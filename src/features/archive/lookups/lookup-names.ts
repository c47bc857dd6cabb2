import { padded } from '../manifest.ts';

/**
 * Lookup files: the entries of several segments' indexes, merged, so that an aggregate is found
 * without a look at each index. For n segments there is a file for each set bit of n, like the
 * trees of a binary counter: 13 segments have lookups of 8 and 4, and the 13th's own index. Beside
 * each is the signed file of its blocks' hashes, without which it counts as missing.
 */
export type Range = { first: number; last: number };

const LOOKUP = /^lookup-(\d{6,})-(\d{6,})(\.sums)?$/;

export function lookupName({ first, last }: Range): string {
  return `lookup-${padded(first)}-${padded(last)}`;
}

export function sumsName(range: Range): string {
  return `${lookupName(range)}.sums`;
}

/** Whether it is the name of a lookup file or of its hashes. */
export function isLookupName(name: string): boolean {
  return LOOKUP.test(name);
}

/** The ranges that an archive of so many segments is divided into, those of one segment too. */
export function rangesOf(segments: number): Range[] {
  const ranges: Range[] = [];
  for (let first = 1; first <= segments;) {
    const last = first + 2 ** Math.floor(Math.log2(segments - first + 1)) - 1;
    ranges.push({ first, last });
    first = last + 1;
  }
  return ranges;
}

/** The largest lookups that exist, in the order of segments; indexes where there are none. */
export function coverOf({ first, last }: Range, names: readonly string[]): Range[] {
  const found = lookupsIn(names).filter((range) => range.first >= first && range.last <= last);
  const cover: Range[] = [];
  for (let next = first; next <= last;) {
    const largest = found
      .filter((range) => range.first === next)
      .reduce((best, range) => Math.max(best, range.last), next);
    cover.push({ first: next, last: largest });
    next = largest + 1;
  }
  return cover;
}

/** The lookups that are whole: both of their files are there. */
function lookupsIn(names: readonly string[]): Range[] {
  const all = new Set(names);
  return names.flatMap((name) => {
    const [, first, last, isSums] = LOOKUP.exec(name) ?? [];
    if (last === undefined || isSums !== undefined) return [];
    const range = { first: Number(first), last: Number(last) };
    return all.has(sumsName(range)) ? [range] : [];
  });
}
