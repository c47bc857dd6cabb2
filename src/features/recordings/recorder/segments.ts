import type { SegmentHead } from '#src/features/recordings/segment-format.ts';
import { createSegmentWriter, type FinishedSegment, type SegmentWriter } from './segment-writer.ts';

/** The segments of one recording as they are written: one at a time. */
export type Segments = {
  /** Whether a segment is being written, or is being finished. */
  readonly isWriting: boolean;
  /** Whether a segment takes further messages. */
  readonly isOpen: boolean;
  /** Bytes of the open segment. */
  readonly length: number;
  /** Whether the next segment is to begin with the whole screen. */
  readonly isWholeDue: boolean;
  /**
   * Adds a message to the open segment, or to a new one. Resolves when the next one may come.
   * @param head of the segment that it begins, if it does; the time is the message's
   */
  append(head: SegmentHead, message: Uint8Array): Promise<void>;
  /** Finishes the open segment, and passes it on. */
  close(): void;
  /** Resolves once all closed segments were passed on. */
  settled(): Promise<void>;
};

export type SegmentsOptions = {
  /** A segment is finished this long after its first message. */
  segmentMs: number;
  /** The screen is recorded as a whole at least this often, while it changes. */
  wholeEveryMs: number;
  now: () => number;
  finished: (segment: FinishedSegment) => void;
  onError: (error: unknown) => void;
};

const SEGMENT_BYTES = 1024 * 1024;
/** The screen is recorded as a whole once so much, and as much as it is, was stored since. */
const BETWEEN_WHOLE_BYTES = 128 * 1024;

export function createSegments(options: SegmentsOptions): Segments {
  const { segmentMs, wholeEveryMs, now, finished, onError } = options;
  let open: SegmentWriter | null = null;
  let timer: NodeJS.Timeout | undefined;
  let unfinished = 0;
  let settled = Promise.resolve();
  /** The last whole screen: when it was recorded, its bytes, and what was stored since. */
  const whole = { at: 0, bytes: 0, sinceBytes: 0 };

  async function finish(writer: SegmentWriter, before: Promise<void>): Promise<void> {
    await before;
    try {
      const segment = await writer.finish();
      whole.sinceBytes += segment.bytes.length;
      if (segment.full) Object.assign(whole, { bytes: segment.bytes.length, sinceBytes: 0 });
      finished(segment);
    } catch (error) {
      onError(error);
    } finally {
      unfinished -= 1;
    }
  }
  function close(): void {
    clearTimeout(timer);
    if (open === null) return;
    unfinished += 1;
    settled = finish(open, settled);
    open = null;
  }
  return {
    get isWriting() {
      return open !== null || unfinished > 0;
    },
    get isOpen() {
      return open !== null;
    },
    get length() {
      return open?.length ?? 0;
    },
    get isWholeDue() {
      const enough = Math.max(BETWEEN_WHOLE_BYTES, whole.bytes);
      return now() - whole.at >= wholeEveryMs || whole.sinceBytes >= enough;
    },
    async append(head, message) {
      if (open === null) {
        open = createSegmentWriter(head);
        timer = setTimeout(close, segmentMs);
        if (head.full) whole.at = head.startedAt;
      }
      const writer = open;
      await writer.write(head.startedAt, message);
      if (writer.length >= SEGMENT_BYTES && open === writer) close();
    },
    close,
    settled: () => settled,
  };
}
