import { LEASE_MS, type Leases } from './leases.ts';
import type { Clock } from './work-queue.memory.ts';

/** Leases of this process, by a clock that tests set. */
export function createMemoryLeases(clock: Clock): Leases {
  const ends = new Map<string, number>();
  const holders = new Map<string, string>();
  return {
    renew(serverId) {
      ends.set(serverId, clock.now() + LEASE_MS);
      return Promise.resolve();
    },
    acquire(name, holder) {
      const held = holders.get(name);
      const isFree = held === undefined || held === holder || (ends.get(name) ?? 0) <= clock.now();
      if (isFree) {
        holders.set(name, holder);
        ends.set(name, clock.now() + LEASE_MS);
      }
      return Promise.resolve(isFree);
    },
    release(name, holder) {
      if (holder !== undefined && holders.get(name) !== holder) return Promise.resolve();
      holders.delete(name);
      ends.delete(name);
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
