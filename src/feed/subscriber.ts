import type { RecordedEvent } from '#events/events.ts';
import { isLast, isWanted, type Asked } from './subscription.ts';
import { endFrame, HEARTBEAT, openingFrame, type EndReason } from './sse-frames.ts';
import { createOutlet, type Outlet, type Sink } from './sink.ts';

/** An event with its bytes, which are the same for all clients. */
export type Entry = { sequence: number; event: RecordedEvent; frame: Buffer };

/** One who listens. */
export type Client = Pick<Outlet, 'isFull' | 'fullSince' | 'drained'> & {
  readonly asked: Asked;
  /** Aborts when the stream has ended, whoever ended it. */
  readonly signal: AbortSignal;
  /** Every event up to here was sent, or is not wanted. */
  cursor(): number;
  /** Notes that there is nothing wanted up to here that was not sent. */
  advance(sequence: number): void;
  /** Sends what of these is ahead of the cursor and wanted, in order, until the socket is full. */
  send(entries: readonly Entry[]): void;
  end(reason: EndReason | null): void;
};

/** Sent at once; more is sent when that is taken. */
const SLICE_BYTES = 64 * 1024;
const HEARTBEAT_MS = 15_000;

/**
 * Begins a client's stream behind `after`. `onDrained` is called when its socket, having been full,
 * takes bytes again; `onEnded` once, with why (null: it had all, or it went away).
 */
export function createClient(
  asked: Asked,
  after: number,
  sink: Sink,
  on: { drained: () => void; ended: (reason: EndReason | null) => void },
): Client {
  const ended = new AbortController();
  const { signal } = ended;
  const outlet = createOutlet(sink, on.drained);
  let cursor = after;

  function end(reason: EndReason | null): void {
    if (signal.aborted) return;
    clearInterval(heartbeat);
    ended.abort();
    outlet.release();
    sink.end(reason === null ? undefined : endFrame(reason));
    on.ended(reason);
  }
  /** Sends the first of these, as many as go at once, and tells how many those were. */
  function sendSlice(entries: readonly Entry[]): number {
    const frames: Buffer[] = [];
    let [taken, bytes, isOver] = [0, 0, false];
    for (const { sequence, event, frame } of entries) {
      if (bytes >= SLICE_BYTES || isOver) break;
      taken += 1;
      cursor = sequence;
      isOver = isLast(asked, event);
      if (!isWanted(asked, event)) continue;
      frames.push(frame);
      bytes += frame.length;
    }
    if (frames.length > 0) outlet.write(joined(frames));
    if (isOver) end(null);
    return taken;
  }

  const heartbeat = setInterval(() => {
    if (!outlet.isFull()) outlet.write(HEARTBEAT);
  }, HEARTBEAT_MS);
  outlet.write(openingFrame(asked.sessionId ?? asked.organizationId, after));
  sink.onClose(() => end(null));
  return {
    ...outlet,
    asked,
    signal,
    cursor: () => cursor,
    advance(sequence) {
      cursor = Math.max(cursor, sequence);
    },
    send(entries) {
      if (outlet.isFull()) return;
      let ahead = entries.slice(firstAhead(entries, cursor));
      while (ahead.length > 0 && !outlet.isFull() && !signal.aborted)
        ahead = ahead.slice(sendSlice(ahead));
    },
    end,
  };
}

/** Most are behind it as a rule: looked for from the end. */
function firstAhead(entries: readonly Entry[], cursor: number): number {
  return 1 + entries.findLastIndex(({ sequence }) => sequence <= cursor);
}

/** The newest bytes that were joined: most clients get the same, one after the other. */
let newest: { frames: readonly Buffer[]; bytes: Buffer } = { frames: [], bytes: Buffer.alloc(0) };

function joined(frames: readonly Buffer[]): Buffer {
  const [only] = frames;
  if (frames.length === 1 && only !== undefined) return only;
  const isSame =
    frames.length === newest.frames.length &&
    frames.every((frame, index) => frame === newest.frames[index]);
  if (!isSame) newest = { frames, bytes: Buffer.concat(frames) };
  return newest.bytes;
}
