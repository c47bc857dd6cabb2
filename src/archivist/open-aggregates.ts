import { parseSubject, type AggregateRef } from '#events/subjects.ts';
import type { RawRecord } from '#src/event-store/raw-records.ts';

/** The event types after which an aggregate is finished: nothing more is decided on its state. */
const ENDINGS = new Set([
  'session.stopped',
  'session.failed',
  'workload.terminated',
  'server.left',
  'server.lost',
]);

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
  /** The last subject of each by the part that all of its subjects have. */
  const open = new Map<string, string>();

  function add(records: readonly Subject[]): void {
    for (const { subject } of records) {
      const end = subject.lastIndexOf('.');
      const aggregate = subject.slice(0, end);
      // Most subjects are distinguished by their last token, without a parse.
      const mayEnd = LAST_TOKENS.has(subject.slice(end + 1));
      if (mayEnd && ENDINGS.has(parseSubject(subject)?.type ?? '')) open.delete(aggregate);
      else open.set(aggregate, subject);
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
    // A subject that is no event's has no state to carry.
    all: () => [...open.values()].flatMap((subject) => parseSubject(subject)?.aggregate ?? []),
  };
}
