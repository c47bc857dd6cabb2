/**
 * Port: the log's messages as they are stored, not as today's schemas read them: what is proved to
 * be untouched has to be the bytes. Adapter: records.jetstream.ts.
 */
export type Records = {
  /**
   * The records of a piece of the log, oldest first, in batches: behind `after`, up to and
   * including `upTo`, of one organization (null: all there are).
   * @throws Unavailable('event-log')
   */
  read(range: RecordRange): AsyncIterable<LogRecord[]>;
};

export type RecordRange = { after: number; upTo: number; organizationId: string | null };

export type LogRecord = {
  sequence: number;
  /** ISO 8601 UTC with nanoseconds, by the log's clock. */
  storedAt: string;
  subject: string;
  /** In the order of the message. */
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
};
