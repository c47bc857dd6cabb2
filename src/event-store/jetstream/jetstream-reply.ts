/** The server's facts about a delivery, from the message's reply subject. */
export type DeliveryFacts = {
  /** 1 for the first delivery of the message by its consumer. */
  deliveries: number;
  /** Position in the stream. */
  sequence: number;
  /** Counts the consumer's deliveries, from 1 without gap. */
  consumerSequence: number;
  /** When the message was stored: nanoseconds since 1970, as digits. */
  storedNanos: string;
  /** Matching messages that were stored but not delivered yet, by the server's count. */
  pending: number;
};

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>`,
 * or the longer form with a domain and an account before the stream.
 */
export function readReply(reply: string): DeliveryFacts {
  const tokens = reply.split('.');
  const at = tokens.length === 9 ? 4 : 6;
  return {
    deliveries: Number(tokens[at]),
    sequence: Number(tokens[at + 1]),
    consumerSequence: Number(tokens[at + 2]),
    storedNanos: tokens[at + 3] ?? '',
    pending: Number(tokens[at + 4]),
  };
}

let second = { digits: '', text: '' };

/** Nanoseconds since 1970 as ISO 8601 UTC, in the server's form: without zeros at the end. */
export function timeOfNanos(nanos: string): string {
  const digits = nanos.slice(0, -9);
  // Most messages were stored within the second of the one before.
  if (digits !== second.digits)
    second = { digits, text: new Date(Number(digits) * 1_000).toISOString().slice(0, -5) };
  let end = nanos.length;
  while (end > digits.length && nanos.charCodeAt(end - 1) === 0x30) end -= 1;
  const fraction = nanos.slice(digits.length, end);
  return fraction === '' ? `${second.text}Z` : `${second.text}.${fraction}Z`;
}
