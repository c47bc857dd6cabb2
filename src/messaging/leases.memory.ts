import { LEASE_MS, type Leases } from './leases.ts';
import type { Clock } from './work-queue.memory.ts';

/** Leases of this process, by a clock that tests set. */
export function createMemoryLeases(clock: Clock): Leases {
  const ends = new Map<string, number>();
  return {
    renew(serverId) {
      ends.set(serverId, clock.now() + LEASE_MS);
      return Promise.resolve();
    },
    release(serverId) {
      ends.delete(serverId);
      return Promise.resolve();
    },
    held() {
      const now = clock.now();
      return Promise.resolve(
        new Set([...ends].filter(([, end]) => end > now).map(([serverId]) => serverId)),
      );
    },
  };
}
