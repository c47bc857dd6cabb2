import { parseSubject, streamFilter, type AggregateRef } from '#events/subjects.ts';
import type { RawRecord } from '#src/event-store/raw-records.ts';

/** The event types after which an aggregate is finished: nothing more is decided on its state. */
const ENDINGS = new Set([
  'session.stopped',
  'session.failed',
  'workload.terminated',
  'server.left',
  'server.lost',
]);

/**
 * The aggregates that are not finished at the end of the records added. Their last event may be
 * purged only once a later one carries their state. Holds only these in memory, not all there were.
 */
export type OpenAggregates = {
  add(records: readonly RawRecord[]): void;
  /** Passes the records through, and adds them. */
  watch(batches: AsyncIterable<RawRecord[]>): AsyncIterable<RawRecord[]>;
  all(): AggregateRef[];
};

export function createOpenAggregates(): OpenAggregates {
  const open = new Map<string, AggregateRef>();

  function add(records: readonly RawRecord[]): void {
    for (const { subject } of records) {
      const parsed = parseSubject(subject);
      // A subject that is no event's has no state to carry.
      if (parsed === null) continue;
      const key = streamFilter(parsed.aggregate);
      if (ENDINGS.has(parsed.type)) open.delete(key);
      else open.set(key, parsed.aggregate);
    }
  }
  return {
    add,
    async *watch(batches) {
      for await (const records of batches) {
        add(records);
        yield records;
      }
    },
    all: () => [...open.values()],
  };
}
