/**
 * Port: the event store's messages as they are stored, not decoded by today's schemas. A proof that
 * nothing was changed needs the bytes. Adapter: jetstream/jetstream-raw-records.ts.
 */
export type RawRecords = {
  /**
   * The records of a range, oldest first, in batches: after `after`, up to and including `upTo`, of
   * one organization (null: all records), or of the subjects that a filter matches.
   * @throws Unavailable('event-log')
   */
  read(range: RecordRange): AsyncIterable<RawRecord[]>;
};

export type RecordRange = { after: number; upTo: number } & (
  | { organizationId: string | null }
  | { filter: string }
);

export type RawRecord = {
  sequence: number;
  /** ISO 8601 UTC with nanoseconds, by the event store's clock. */
  storedAt: string;
  subject: string;
  /** In the order of the message. */
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
};
