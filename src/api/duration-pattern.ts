import { DURATION_MAX_MS } from '../session/duration.ts';

/** Digits that a part of a duration may have, zeros before it included: as parseDuration reads. */
const DIGITS_MAX = 4;
const HOURS_MAX = DURATION_MAX_MS / 3_600_000;
const MINUTES_MAX = DURATION_MAX_MS / 60_000;

/**
 * The pattern of all durations that parseDuration takes, and of nothing else, for the document: so
 * that a client can tell one that will be refused. How many minutes may follow depends on the
 * hours, and a pattern cannot count: each hour has its own.
 */
export function durationPattern(): string {
  const withHours = Array.from({ length: HOURS_MAX }, (_, index) => {
    const hours = index + 1;
    return `${zeros(`${hours}`)}${hours}h(${upTo(MINUTES_MAX - 60 * hours)}m)?`;
  });
  return `^((0{1,${DIGITS_MAX}}h)?${fromOneTo(MINUTES_MAX)}m|${withHours.join('|')})$`;
}

/** Whole numbers from 0 to `high`, with zeros before them or without. */
function upTo(high: number): string {
  const text = `${high}`;
  const shorter = text.length === 1 ? [] : [anyDigits(1, text.length - 1)];
  return oneOf([...shorter, zeros(text) + digits('0'.repeat(text.length), text)]);
}

/** The same from 1 on. */
function fromOneTo(high: number): string {
  const ways = Array.from({ length: `${high}`.length }, (_, shift) => {
    const low = `${10 ** shift}`;
    return zeros(low) + digits(low, `${Math.min(high, 10 ** (shift + 1) - 1)}`);
  });
  return oneOf(ways);
}

/** Texts of digits from `low` to `high`, which are of one length. */
function digits(low: string, high: string): string {
  if (low === high) return low;
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  const [first, last] = [Number(low[0]), Number(high[0])];
  if (first === last) return first + digits(lowRest, highRest);
  // First digits after which any others may follow, and at the ends those after which some may.
  const from = /^0*$/.test(lowRest) ? first : first + 1;
  const to = /^9*$/.test(highRest) ? last : last - 1;
  const ways = [];
  if (from > first) ways.push(first + digits(lowRest, highRest.replaceAll(/./g, '9')));
  if (from <= to) ways.push(digitFrom(from, to) + anyDigits(lowRest.length));
  if (to < last) ways.push(last + digits(lowRest.replaceAll(/./g, '0'), highRest));
  return oneOf(ways);
}

function digitFrom(low: number, high: number): string {
  return low === high ? `${low}` : `[${low}-${high}]`;
}

function anyDigits(min: number, max = min): string {
  if (max === 0) return '';
  if (max === 1) return '[0-9]';
  return `[0-9]{${min === max ? min : `${min},${max}`}}`;
}

/** Zeros that may stand before the number. */
function zeros(number: string): string {
  const most = DIGITS_MAX - number.length;
  return most === 0 ? '' : `0{0,${most}}`;
}

function oneOf(ways: readonly string[]): string {
  return ways.length === 1 ? (ways[0] ?? '') : `(${ways.join('|')})`;
}
