import { TimeoutError } from '@nats-io/transport-node';
import type { JetStreamConnection } from './connection.ts';
import { headerText, textOf } from './message.ts';
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

function storedOf(text: string, data: Uint8Array): Stored {
  const headers: [string, string][] = [];
  const stored = { subject: '', sequence: Number.NaN, storedAt: '' };
  for (let start = text.indexOf(LINE_BREAK) + 2, end = 0; ; start = end + 2) {
    end = text.indexOf(LINE_BREAK, start);
    if (end <= start) break;
    const colon = text.indexOf(':', start);
    if (colon === -1 || colon > end) continue;
    const name = text.slice(start, colon);
    const value = text.slice(colon + 1, end).trim();
    if (name === 'Nats-Subject') stored.subject = value;
    else if (name === 'Nats-Sequence') stored.sequence = Number(value);
    else if (name === 'Nats-Time-Stamp') stored.storedAt = value;
    // The server has others: the message's position, and the append's expectation.
    else if (!name.startsWith('Nats-')) headers.push([name, value]);
  }
  return { ...stored, headers, body: textOf(data) };
}
