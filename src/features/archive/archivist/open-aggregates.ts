import { parseSubject, type AggregateRef } from '#events/subjects.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';

/** The event types after which an aggregate is finished: nothing more is decided on its state. */
const ENDINGS = new Set([
  'session.stopped',
  'session.failed',
  'workload.terminated',
  'server.left',
  'server.lost',
]);

/** The last tokens of their subjects. */
const LAST_TOKENS = new Set([...ENDINGS].map((type) => type.slice(type.lastIndexOf('.') + 1)));

type Subject = Pick<RawRecord, 'subject'>;

/**
 * The aggregates that are not finished at the end of the records added. Their last event may be
 * purged only once a later one carries their state. Holds only these in memory, not all there were.
 */
export type OpenAggregates = {
  add(records: readonly Subject[]): void;
  /** Passes the records through, and adds them. */
  watch<Some extends Subject>(batches: AsyncIterable<Some[]>): AsyncIterable<Some[]>;
  all(): AggregateRef[];
};

export function createOpenAggregates(): OpenAggregates {
  /** By the part that all subjects of an aggregate have. */
  const open = new Map<string, AggregateRef>();

  function add(records: readonly Subject[]): void {
    for (const { subject } of records) {
      const end = subject.lastIndexOf('.');
      const prefix = subject.slice(0, end);
      // A parse takes as long as all the rest: most subjects are known by their parts.
      if (open.has(prefix) && !LAST_TOKENS.has(subject.slice(end + 1))) continue;
      const parsed = parseSubject(subject);
      // A subject that is no event's has no state to carry.
      if (parsed === null) continue;
      if (ENDINGS.has(parsed.type)) open.delete(prefix);
      else open.set(prefix, parsed.aggregate);
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
