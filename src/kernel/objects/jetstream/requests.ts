import { JetStreamApiError, type StoredMsg } from '@nats-io/jetstream';
import { headSubject, headsFilter, keyOfHead, OBJECTS_STREAM } from '#events/object-subjects.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { isForbidden, requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import { ObjectStoreFull, ObjectStoreUnavailable, type StoreUse } from '../object-store.ts';

/** Longest time for one request with its repetitions. */
export const ANSWER_MS = 10_000;
/** Longest wait for the answer to one message of a chunk; a slow disk may take its time. */
const STORE_MS = 5_000;

/** Error codes: no room by the stream's limit, or by the server's or the account's. */
const STORE_FAILED = 10077;
const NO_ROOM = new Set([10023, 10047, 10002, 10028]);

/**
 * What describes an object, as JSON in the message of its head. `put`: id of the put whose chunks
 * are its bytes. `chunkBytes`: of each chunk but the last.
 */
export type Head = {
  put: string;
  chunks: number;
  chunkBytes: number;
  bytes: number;
  sha256: string;
  storedAt: number;
};
export type StoredHead = Head & { sequence: number };

/** The requests that an object store sends to the stream OBJECTS. */
export type ObjectRequests = ReturnType<typeof createObjectRequests>;

export function createObjectRequests(connection: JetStreamConnection, answerMs: number) {
  const { js, jsm } = connection;
  const ask = <Answer>(request: () => Promise<Answer>) =>
    requestWithRetry(connection, answerMs, request).catch((error: unknown) => {
      throw explained(error);
    });
  // By the leader: a replica may lag, and an object would be missing or an earlier one.
  const lastOf = (subject: string): Promise<StoredMsg | null> =>
    ask(() => jsm.streams.getMessage(OBJECTS_STREAM, { last_by_subj: subject }));

  return {
    /** The last message on a subject, from the leader; null: there is none. */
    last: lastOf,
    /** Stores a message. @param after the last sequence on its subject; another one is an error */
    store(subject: string, data: Uint8Array | string, after?: number): Promise<unknown> {
      const expect = after === undefined ? {} : { expect: { lastSubjectSequence: after } };
      return ask(() =>
        js.publish(subject, data, { timeout: STORE_MS, ...expect }).catch((error: unknown) => {
          // Not an outage, although its status says so: it would be tried again in vain.
          throw isFull(error) ? new ObjectStoreFull(error) : error;
        }),
      );
    },
    /** Null: no such object. */
    async head(key: string): Promise<StoredHead | null> {
      const message = await lastOf(headSubject(key));
      return message === null ? null : { ...message.json<Head>(), sequence: message.seq };
    },
    /** Null: no such chunk. */
    async chunk(subject: string): Promise<Uint8Array | null> {
      const query = { last_by_subj: subject };
      const found = await ask(() => jsm.direct.getMessage(OBJECTS_STREAM, query));
      // A replica that lags has it later than the leader.
      return (found ?? (await lastOf(subject)))?.data ?? null;
    },
    /** How long ago a chunk was stored, by the server's clock. Null: no such chunk. */
    async ageMs(subject: string): Promise<number | null> {
      const found = await lastOf(subject);
      if (found === null) return null;
      const { ts } = await ask(() => jsm.streams.info(OBJECTS_STREAM));
      // A server that does not tell its time keeps what it has.
      return ts === undefined ? 0 : Date.parse(ts) - found.time.getTime();
    },
    /** Null: the stream has no greatest size. */
    async use(): Promise<StoreUse | null> {
      const { config, state } = await ask(() => jsm.streams.info(OBJECTS_STREAM));
      const { max_bytes: maxBytes } = config;
      return maxBytes > 0 ? { bytes: state.bytes, maxBytes } : null;
    },
    /** The keys of all objects under the prefix, sorted. */
    async keysUnder(prefix: string): Promise<string[]> {
      return (await this.subjects(headsFilter(prefix))).map(keyOfHead).toSorted();
    },
    /** All subjects that the filter matches. */
    async subjects(filter: string): Promise<string[]> {
      const query = { subjects_filter: filter, deleted_details: false, offset: 0 };
      const { state } = await ask(() => jsm.streams.info(OBJECTS_STREAM, query));
      return Object.keys(state.subjects ?? {});
    },
    /** Removes what the filter matches, before a sequence if one is given. */
    async purge(filter: string, before?: number): Promise<number> {
      const upTo = before === undefined ? {} : { seq: before };
      const purged = await ask(() => jsm.streams.purge(OBJECTS_STREAM, { filter, ...upTo }));
      return purged.purged;
    },
  };
}

function isFull(error: unknown): boolean {
  if (!(error instanceof JetStreamApiError)) return false;
  return NO_ROOM.has(error.code) || (error.code === STORE_FAILED && /maximum/.test(error.message));
}

function explained(error: unknown): unknown {
  if (error instanceof ObjectStoreUnavailable) return error;
  if (error instanceof Unavailable) return new ObjectStoreUnavailable(error.cause);
  return isForbidden(error) ? new ObjectStoreUnavailable(error) : error;
}
