import type { RecordedEvent } from '#events/events.ts';
import { toPublicEvent } from '#events/public-event.ts';

/** Why a stream ends before its time; its client is told. */
export const endReasons = {
  slow_reader: 'This client reads too slowly; what it missed is sent when it reconnects.',
  credential_revoked: 'The credential of this stream is no longer valid.',
  shutting_down: 'This server ends; reconnect, and another goes on.',
  interrupted: 'This server lost the event log; reconnect.',
} as const;
export type EndReason = keyof typeof endReasons;

/** Reconnects come so much later, spread over as much: not all at once. */
const RETRY_MIN_MS = 500;
const RETRY_SPREAD_MS = 2_000;

/** A comment, which keeps what stands between from closing an idle connection. */
export const HEARTBEAT = Buffer.from(': heartbeat\n\n');

/** An event as its clients get it: less what of it stays inside. */
export function eventFrame(event: RecordedEvent): Buffer {
  const { sequence, type } = event;
  const data = JSON.stringify(toPublicEvent(event));
  return Buffer.from(`id: ${sequence}\nevent: ${type}\ndata: ${data}\n\n`);
}

/**
 * What every stream begins with. The id stands without an event: whoever is cut off before the
 * first one resumes from here.
 */
export function openingFrame(what: string, after: number): Buffer {
  return Buffer.from(`: events of ${what}, from behind ${after}\n${retry()}id: ${after}\n\n`);
}

/** The last word of a stream that ends before its time. */
export function endFrame(reason: EndReason): Buffer {
  const data = JSON.stringify({ reason, message: endReasons[reason] });
  return Buffer.from(`${retry()}event: end\ndata: ${data}\n\n`);
}

function retry(): string {
  return `retry: ${Math.round(RETRY_MIN_MS + Math.random() * RETRY_SPREAD_MS)}\n`;
}
