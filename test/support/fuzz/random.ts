import { mulberry32 } from '#test/support/random.ts';

/** A source of random values that repeats with its seed: a failing run can be run again. */
export type Random = {
  /** A whole number from 0 to `below - 1`. */
  int(below: number): number;
  chance(share: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
  bytes(length: number): Buffer;
};

export function createRandom(seed: number): Random {
  const next = mulberry32(seed);
  const int = (below: number) => (next() * 2 ** 32) % below;
  return {
    int,
    chance: (share) => next() < share,
    pick: (values) => {
      const value = values[int(values.length)];
      if (value === undefined) throw new RangeError('nothing to pick from');
      return value;
    },
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(256))),
  };
}
