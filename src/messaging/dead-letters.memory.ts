import { EVENTS_STREAM } from '#events/subjects.ts';
import type { ParkedEvent, ParkedEvents, ParkedRef } from './dead-letters.ts';

/** Parked events in this process's memory, for tests. */
export function createMemoryParked(now: () => number = Date.now): ParkedEvents {
  const events = new Map<string, ParkedEvent>();
  const skipped = new Set<string>();

  return {
    async park(event) {
      if (events.has(keyOf(event))) return;
      const at = new Date(now()).toISOString();
      const more = { kind: 'projection', stream: EVENTS_STREAM, at } as const;
      events.set(keyOf(event), { ...event, ...more });
    },
    async list() {
      return [...events.values()]
        .filter((event) => !skipped.has(keyOf(event)))
        .toSorted((a, b) => a.sequence - b.sequence || a.by.localeCompare(b.by));
    },
    async redeliver() {
      return { outcome: 'fails', reason: 'no work queue has parked it' };
    },
    async skip(event) {
      skipped.add(keyOf(event));
    },
    async forget(event) {
      events.delete(keyOf(event));
    },
  };
}

function keyOf({ by, sequence }: ParkedRef): string {
  return `${by} ${sequence}`;
}
