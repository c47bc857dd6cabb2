import { TimeoutError } from '@nats-io/transport-node';
import type { JetStreamConnection } from './connection.ts';
import { headersOf, ownHeaders, textOf } from '../record-bytes.ts';
import { headerText } from './message.ts';
import { requestWithRetry } from './request.ts';

/** Parameters of a direct get, by the server's names. */
export type DirectQuery =
  | { multi_last: readonly string[]; up_to_seq: number }
  | { seq: number; batch: number; max_bytes?: number; next_by_subj?: string };

/** A stored message. */
export type Stored = {
  subject: string;
  sequence: number;
  /** ISO 8601 UTC with nanoseconds, by the server's clock. */
  storedAt: string;
  /** The message's own headers in their order, without those that the server added. */
  headers: readonly (readonly [name: string, value: string])[];
  body: string;
};

/** Longest silence within one answer. */
const SILENCE_MS = 2_000;
const END_OF_BATCH = 204;
const NOTHING_FOUND = 404;

/**
 * All messages of one direct get, oldest first. The client's own function never ends its
 * subscription.
 * @throws Unavailable('event-log') if they do not arrive within the bound
 */
export async function getMany(
  connection: JetStreamConnection,
  stream: string,
  query: DirectQuery,
  withinMs: number,
): Promise<Stored[]> {
  const stored = await requestWithRetry(connection, withinMs, () =>
    request(connection, stream, query),
  );
  return stored.toSorted((one, other) => one.sequence - other.sequence);
}

async function request(
  connection: JetStreamConnection,
  stream: string,
  query: DirectQuery,
): Promise<Stored[]> {
  const { nc } = connection;
  const inbox = connection.newInbox();
  const { promise, resolve, reject } = Promise.withResolvers<Stored[]>();
  const found: Stored[] = [];
  const startTimer = () => setTimeout(() => reject(new TimeoutError()), SILENCE_MS);
  let timer = startTimer();
  const subscription = nc.subscribe(inbox, {
    callback(error, message) {
      clearTimeout(timer);
      if (error !== null) return reject(error);
      const headers = headerText(message);
      if (headers === null)
        return reject(new TypeError('the bytes of a message are not accessible'));
      const status = headers.slice(PROTOCOL.length, headers.indexOf(LINE_BREAK)).trim();
      const code = status === '' ? 0 : Number.parseInt(status, 10);
      if (code === END_OF_BATCH || code === NOTHING_FOUND) return resolve(found);
      // 503: no server answers for the stream now. Any other code is a bug of ours.
      if (code === 503) return reject(new TimeoutError());
      if (code !== 0) return reject(new Error(`direct get: ${status}`));
      timer = startTimer();
      found.push(storedOf(headers, message.data));
    },
  });
  try {
    nc.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(query), { reply: inbox });
    return await promise;
  } finally {
    clearTimeout(timer);
    subscription.unsubscribe();
  }
}

const PROTOCOL = 'NATS/1.0';
const LINE_BREAK = '\r\n';

function storedOf(block: string, data: Uint8Array): Stored {
  const facts = new Map(headersOf(block));
  return {
    subject: facts.get('Nats-Subject') ?? '',
    sequence: Number(facts.get('Nats-Sequence')),
    storedAt: facts.get('Nats-Time-Stamp') ?? '',
    headers: ownHeaders(block),
    body: textOf(data),
  };
}
