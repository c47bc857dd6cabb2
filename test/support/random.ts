/** A stream of random numbers that the seed alone decides. */
export type Random = {
  /** From 0 up to 1. */
  next(): number;
  /** True for this share of the calls, 0 to 1. */
  chance(share: number): boolean;
  /** An integer from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  pick<Value>(values: readonly Value[]): Value;
  /** A time with this mean, in milliseconds: short ones are frequent, long ones rare. */
  pauseMs(meanMs: number): number;
  bytes(count: number): Buffer;
};

/**
 * The same numbers for the same seed and name. Each user has a stream of its own, so that one more
 * call of one of them does not change what the others get.
 */
export function createRandom(seed: number, name: string): Random {
  const next = mulberry32(hashOf(`${seed} ${name}`));
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    chance: (share) => next() < share,
    integer,
    pick<Value>(values: readonly Value[]) {
      if (values.length === 0) throw new RangeError('nothing to pick from');
      return values[integer(0, values.length - 1)] as Value;
    },
    pauseMs: (meanMs) => -Math.log(1 - next()) * meanMs,
    bytes: (count) => Buffer.from(Array.from({ length: count }, () => integer(0, 255))),
  };
}

/**
 * Numbers from 0 up to 1, the same for the same seed: the mulberry32 generator. Its 32 bits of
 * state are enough for one run of a test.
 */
export function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}
