import { MsgImpl, type Msg, type MsgHdrs } from '@nats-io/transport-node';
import { decode, headersRead, MalformedEvent, UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { SubscribeOptions } from '../event-store.ts';
import { textOf } from '../record-bytes.ts';
import type { Arrival } from './ordered-consumer.ts';

/** The parts of a message that hold its item. */
export type Readable = Pick<Msg, 'subject' | 'data' | 'json'> & { headers?: MsgHdrs | undefined };

/** A message with the moment at which the server stored it. */
export type Stored = Readable & { time: Date };

/**
 * The event in a message of the EVENTS stream.
 * @throws MalformedEvent
 */
export function readEvent(message: Readable, sequence: number): RecordedEvent {
  const { head, body } = textsOf(message);
  const header =
    head === null ? (name: string) => message.headers?.get(name) ?? '' : headerIn(head);
  return decode(message.subject, header, body, sequence);
}

/**
 * The header lines (null: their bytes are out of reach) and the body. One view of the bytes serves
 * for both: views are a good part of what decoding allocates.
 */
function textsOf(message: Readable): { head: string | null; body: string } {
  if (!(message instanceof MsgImpl)) return { head: null, body: textOf(message.data) };
  const { _rdata: bytes, _msg: facts } = message;
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = Math.max(0, facts.hdr);
  return { head: all.toString('utf8', 0, end), body: all.toString('utf8', end) };
}

/**
 * Decoded messages. `refusal`: what `onUnreadable` threw for the event that follows them; the
 * reader gets it after them.
 */
type Decoded = { events: RecordedEvent[]; refusal: { error: unknown } | null };

/**
 * The events in messages that have arrived. An unreadable one is reported and left out; with
 * `canSkip`, so is one that a later event of its aggregate supersedes.
 */
export function decodeAll(
  arrivals: readonly Arrival[],
  options: Pick<SubscribeOptions, 'onUnreadable' | 'canSkip'>,
): Decoded {
  const { onUnreadable, canSkip } = options;
  if (canSkip !== undefined) return decodeNewest(arrivals, { onUnreadable, canSkip });
  const events: RecordedEvent[] = [];
  for (const arrival of arrivals) {
    try {
      const event = decodeOne(arrival, onUnreadable);
      if (event !== null) events.push(event);
    } catch (error) {
      return { events, refusal: { error } };
    }
  }
  return { events, refusal: null };
}

function decodeNewest(
  arrivals: readonly Arrival[],
  { onUnreadable, canSkip }: Required<Pick<SubscribeOptions, 'onUnreadable' | 'canSkip'>>,
): Decoded {
  let events: RecordedEvent[] = [];
  let refusal: Decoded['refusal'] = null;
  const readable = new Map<string, number>();
  for (const arrival of arrivals.toReversed()) {
    const { subject } = arrival.message;
    const aggregate = subject.slice(0, subject.lastIndexOf('.'));
    const by = readable.get(aggregate);
    if (by !== undefined && canSkip(arrival.sequence, by)) continue;
    try {
      const event = decodeOne(arrival, onUnreadable);
      if (event === null) continue;
      if (event.state !== null) readable.set(aggregate, event.sequence);
      events.push(event);
    } catch (error) {
      // What follows it is not yielded, and supersedes nothing.
      refusal = { error };
      events = [];
      readable.clear();
    }
  }
  return { events: events.toReversed(), refusal };
}

function decodeOne(
  { message, sequence }: Arrival,
  onUnreadable: SubscribeOptions['onUnreadable'],
): RecordedEvent | null {
  const { subject } = message;
  try {
    return readEvent(message, sequence);
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    const kind = error instanceof UnknownEvent ? 'unknown' : 'malformed';
    onUnreadable({ sequence, subject, reason: error.message, kind });
    return null;
  }
}

const lineBeginnings: ReadonlyMap<string, string> = new Map(
  headersRead.map((name) => [name, beginningOf(name)]),
);

function beginningOf(name: string): string {
  return `\r\n${name}:`;
}

/** A header's value by its name; empty: there is none. */
function headerIn(text: string): (name: string) => string {
  let next = 0;
  return (name) => {
    // A value holds no line break, so this matches only at the start of a line.
    const beginning = lineBeginnings.get(name) ?? beginningOf(name);
    // Most are asked for in the order in which they were written.
    let found = text.indexOf(beginning, next);
    if (found === -1) found = text.indexOf(beginning);
    if (found === -1) return '';
    const start = found + beginning.length;
    next = text.indexOf('\r\n', start);
    const value = text[start] === ' ' ? start + 1 : start;
    return text.slice(value, next).trim();
  };
}

/**
 * The lines of a message's headers, the first one the protocol's; null if the client does not give
 * access to their bytes. The client's own parser takes as long as the rest of decoding an event,
 * which halves the speed of a rebuild.
 */
export function headerText(message: unknown): string | null {
  const bytes = headerBytes(message);
  return bytes === null ? null : textOf(bytes);
}

/** The bytes of a message's headers; empty: it has none. */
export function headerBytes(message: unknown): Uint8Array | null {
  if (!(message instanceof MsgImpl)) return null;
  const { _rdata: bytes, _msg: facts } = message;
  return bytes.subarray(0, Math.max(0, facts.hdr));
}
