/** Requests that this server has taken, by the second, for as long as anybody asks about. */
export type Arrivals = {
  note(): void;
  /** How many in the last so many seconds, 60 at most. */
  last(seconds: number): number;
};

const SECONDS_MAX = 60;

/** @param now milliseconds on a clock that only goes forward */
export function createArrivals(now: () => number = () => performance.now()): Arrivals {
  /** Second → requests in it; a ring, so that it never grows. */
  const seconds = Array.from({ length: SECONDS_MAX }, () => ({ second: -1, count: 0 }));
  const secondNow = () => Math.floor(now() / 1000);
  return {
    note() {
      const second = secondNow();
      const slot = seconds[second % SECONDS_MAX];
      if (slot === undefined) return;
      if (slot.second !== second) Object.assign(slot, { second, count: 0 });
      slot.count += 1;
    },
    last(within) {
      const from = secondNow() - within;
      return seconds.reduce((sum, { second, count }) => sum + (second > from ? count : 0), 0);
    },
  };
}
