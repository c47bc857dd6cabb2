/** A source of random values that repeats with its seed: a failing run can be run again. */
export type Random = {
  /** A whole number from 0 to `below - 1`. */
  int(below: number): number;
  chance(share: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
  bytes(length: number): Buffer;
};

/** Mulberry32: 32 bits of state, enough for test data. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
  const int = (below: number) => next() % below;
  return {
    int,
    chance: (share) => next() / 2 ** 32 < share,
    pick: (values) => {
      const value = values[int(values.length)];
      if (value === undefined) throw new RangeError('nothing to pick from');
      return value;
    },
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(256))),
  };
}
