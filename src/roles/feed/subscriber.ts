import type { RecordedEvent } from '#events/events.ts';
import { isFinalEvent, isMatch, type Subscription } from './subscription.ts';
import { endFrame, HEARTBEAT, openingLines, type EndReason } from './sse-frames.ts';
import { createBufferedSink, type BufferedSink, type Sink } from './sink.ts';

/** An event with its bytes, which are the same for all subscribers. */
export type Entry = { sequence: number; event: RecordedEvent; frame: Buffer };

/** One open stream: its subscription, its position and its sink. */
export type Subscriber = Pick<BufferedSink, 'isFull' | 'fullSince' | 'drained'> & {
  readonly subscription: Subscription;
  /** Aborts when the stream ends, on either side. */
  readonly signal: AbortSignal;
  /** Every matching event up to this sequence was sent. */
  cursor(): number;
  /** Moves the cursor: no event up to `sequence` is left to send. */
  advance(sequence: number): void;
  /** Sends the matching entries after the cursor, in order, until the socket is full. */
  send(entries: readonly Entry[]): void;
  end(reason: EndReason | null): void;
};

/** Written at once; more is written when the socket has taken it. */
const SLICE_BYTES = 64 * 1024;
const HEARTBEAT_MS = 15_000;

/**
 * Begins a stream after the sequence `after`. `on.drained` is called when its full socket takes
 * bytes again; `on.ended` once, with the reason (null: the stream is complete, or the client left).
 */
export function createSubscriber(
  subscription: Subscription,
  after: number,
  sink: Sink,
  on: { drained: () => void; ended: (reason: EndReason | null) => void },
): Subscriber {
  const ended = new AbortController();
  const { signal } = ended;
  const buffered = createBufferedSink(sink, on.drained);
  let cursor = after;

  function end(reason: EndReason | null): void {
    if (signal.aborted) return;
    clearInterval(heartbeat);
    ended.abort();
    buffered.release();
    sink.end(reason === null ? undefined : endFrame(reason));
    on.ended(reason);
  }
  /** Writes the first entries in one go, up to `SLICE_BYTES`; returns how many it consumed. */
  function sendSlice(entries: readonly Entry[]): number {
    const frames: Buffer[] = [];
    let [taken, bytes, isOver] = [0, 0, false];
    for (const { sequence, event, frame } of entries) {
      if (bytes >= SLICE_BYTES || isOver) break;
      taken += 1;
      cursor = sequence;
      isOver = isFinalEvent(subscription, event);
      if (!isMatch(subscription, event)) continue;
      frames.push(frame);
      bytes += frame.length;
    }
    if (frames.length > 0) buffered.write(joined(frames));
    if (isOver) end(null);
    return taken;
  }

  const heartbeat = setInterval(() => {
    if (!buffered.isFull()) buffered.write(HEARTBEAT);
  }, HEARTBEAT_MS);
  buffered.write(openingLines(after));
  sink.onClose(() => end(null));
  return {
    ...buffered,
    subscription,
    signal,
    cursor: () => cursor,
    advance(sequence) {
      cursor = Math.max(cursor, sequence);
    },
    send(entries) {
      if (buffered.isFull()) return;
      let ahead = entries.slice(firstAhead(entries, cursor));
      while (ahead.length > 0 && !buffered.isFull() && !signal.aborted)
        ahead = ahead.slice(sendSlice(ahead));
    },
    end,
  };
}

/** Index of the first entry after the cursor; searched from the end, since most are before it. */
function firstAhead(entries: readonly Entry[], cursor: number): number {
  return 1 + entries.findLastIndex(({ sequence }) => sequence <= cursor);
}

/** Cache of the last joined frames: most subscribers get the same ones, one after the other. */
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
