/** Counts the requests that this server has accepted, by the second, for the last minute. */
export type Arrivals = {
  note(): void;
  /** Requests accepted in the last `seconds`, 60 at most. */
  last(seconds: number): number;
};

const SECONDS_MAX = 60;

/** @param now milliseconds on a monotonic clock */
export function createArrivals(now: () => number = () => performance.now()): Arrivals {
  // A ring of one slot per second, so that it never grows.
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
