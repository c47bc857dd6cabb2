import { once } from 'node:events';
import { createDeflate } from 'node:zlib';
import {
  messageHead,
  segmentHead,
  type SegmentHead,
} from '#src/features/recordings/segment-format.ts';

/** A segment that waits to be stored. Times are milliseconds since the epoch. */
export type FinishedSegment = {
  startedAt: number;
  /** When its last message came. */
  endedAt: number;
  full: boolean;
  bytes: Buffer;
};

/** A segment that is being written; it is deflated as it grows. */
export type SegmentWriter = {
  /** Deflated bytes so far, without those that the compressor holds back. */
  readonly length: number;
  /** Adds a message. Resolves when the next one may come. @param at milliseconds since the epoch */
  write(at: number, message: Uint8Array): Promise<void>;
  /** Ends the segment; after the writes before. */
  finish(): Promise<FinishedSegment>;
};

/** Hardly larger than with the usual level, in half the time. */
const LEVEL = 3;

export function createSegmentWriter(head: SegmentHead): SegmentWriter {
  const deflate = createDeflate({ level: LEVEL });
  const chunks: Buffer[] = [];
  let length = 0;
  let endedAt = head.startedAt;
  deflate.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
  });
  deflate.write(segmentHead(head));

  return {
    get length() {
      return length;
    },
    async write(at, message) {
      endedAt = Math.max(endedAt, at);
      deflate.write(messageHead(endedAt - head.startedAt, message.length));
      await new Promise<void>((resolve, reject) => {
        deflate.write(message, (error) => (error == null ? resolve() : reject(error)));
      });
    },
    async finish() {
      deflate.end();
      await once(deflate, 'end');
      const { startedAt, full } = head;
      return { startedAt, endedAt, full, bytes: Buffer.concat(chunks) };
    },
  };
}
