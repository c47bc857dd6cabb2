import type { PoolBursts } from '#events/pool.ts';
import { noBursts, noteRequest } from '#src/kernel/domain/fleet/bursts.ts';

/**
 * The requests that this server has accepted: how many, by the second, in the last minute, and the
 * bursts among them.
 */
export type Arrivals = {
  note(): void;
  /** Requests accepted in the last `seconds`, 60 at most. */
  last(seconds: number): number;
  /** Requests accepted since the start. */
  total(): number;
  bursts(): PoolBursts;
  /** Goes on from the bursts that an earlier provisioner of this server remembered. */
  restore(bursts: PoolBursts): void;
};

const SECONDS_MAX = 60;

/**
 * @param clock milliseconds since the epoch
 * @param now milliseconds on a monotonic clock
 */
export function createArrivals(
  clock: () => number,
  now: () => number = () => performance.now(),
): Arrivals {
  // A ring of one slot per second, so that it never grows.
  const seconds = Array.from({ length: SECONDS_MAX }, () => ({ second: -1, count: 0 }));
  const secondNow = () => Math.floor(now() / 1000);
  let [total, bursts] = [0, noBursts];
  return {
    note() {
      total += 1;
      bursts = noteRequest(bursts, clock());
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
    total: () => total,
    bursts: () => bursts,
    restore(remembered) {
      bursts = remembered;
    },
  };
}
