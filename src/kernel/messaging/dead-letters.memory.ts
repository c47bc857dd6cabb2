import { EVENTS_STREAM } from '#events/subjects.ts';
import type { DeadLetter, DeadLetterStore, DeadLetterRef } from './dead-letters.ts';

/** Dead letters in this process's memory, for tests. */
export function createMemoryDeadLetters(now: () => number = Date.now): DeadLetterStore {
  const events = new Map<string, DeadLetter>();
  const skipped = new Set<string>();

  return {
    async add(event) {
      if (events.has(keyOf(event))) return;
      const at = new Date(now()).toISOString();
      const more = { kind: 'projection', stream: EVENTS_STREAM, at, attempts: 1 } as const;
      events.set(keyOf(event), { ...event, ...more });
    },
    async list() {
      return [...events.values()]
        .filter((event) => !skipped.has(keyOf(event)))
        .toSorted((a, b) => a.sequence - b.sequence || a.by.localeCompare(b.by));
    },
    async redeliver() {
      return { outcome: 'fails', reason: 'it is no dead letter of a work queue' };
    },
    async failedAgain(event) {
      const known = events.get(keyOf(event));
      if (known !== undefined) events.set(keyOf(event), { ...known, attempts: known.attempts + 1 });
    },
    async skip(event) {
      skipped.add(keyOf(event));
    },
    async resolve(event) {
      events.delete(keyOf(event));
    },
  };
}

function keyOf({ by, sequence }: DeadLetterRef): string {
  return `${by} ${sequence}`;
}
