/** The server's facts about a delivery, from the message's reply subject. */
export type DeliveryFacts = {
  /** 1 for the first delivery of the message by its consumer. */
  deliveries: number;
  /** Position in the stream. */
  sequence: number;
  /** Counts the consumer's deliveries, from 1 without gap. */
  consumerSequence: number;
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
    pending: Number(tokens[at + 4]),
  };
}
