import type { RecordedEvent } from '#events/events.ts';
import { toPublicEvent } from '#events/public-event.ts';

/** Why a stream ends early, with the message that its client gets. */
export const endReasons = {
  slow_reader: 'This client reads too slowly; reconnect to receive the missed events.',
  credential_revoked: 'The credential of this stream is no longer valid.',
  shutting_down: 'This server is shutting down; reconnect to continue on another one.',
  newer_version:
    'The service is being upgraded, and this server cannot read the next event yet; reconnect.',
  interrupted: 'This server lost its connection to the event store; reconnect.',
} as const;
export type EndReason = keyof typeof endReasons;

/** Clients reconnect after 0.5 to 2.5 s, at random, so that they do not all come at once. */
const RETRY_MIN_MS = 500;
const RETRY_SPREAD_MS = 2_000;

/**
 * A comment: keeps proxies from closing an idle connection. No blank line follows it: for strict
 * readers each one behind an id ends an event.
 */
export const HEARTBEAT = Buffer.from(': heartbeat\n');

/** The public form of an event as one SSE message. */
export function eventFrame(event: RecordedEvent): Buffer {
  const { sequence, type } = event;
  const data = JSON.stringify(toPublicEvent(event));
  return Buffer.from(`id: ${sequence}\nevent: ${type}\ndata: ${data}\n\n`);
}

/**
 * How a stream begins: the first lines of its first message, be it an event, whose own id counts,
 * or the end, which so has the position.
 */
export function openingLines(after: number): Buffer {
  return Buffer.from(`${retry()}id: ${after}\n`);
}

/** The last message of a stream that ends early. */
export function endFrame(reason: EndReason): Buffer {
  const data = JSON.stringify({ reason, message: endReasons[reason] });
  return Buffer.from(`${retry()}event: end\ndata: ${data}\n\n`);
}

function retry(): string {
  return `retry: ${Math.round(RETRY_MIN_MS + Math.random() * RETRY_SPREAD_MS)}\n`;
}
