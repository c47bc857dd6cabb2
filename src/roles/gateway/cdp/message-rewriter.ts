import { constants, inflateRawSync } from 'node:zlib';
import { FIRST_CONTROL, dataFrame, frameHead, unmask, type FrameHead } from './websocket-frames.ts';

/**
 * Follows a client's WebSocket messages (RFC 6455) in pieces of any length and replaces some. It is
 * for messages that are short and rare, and costs the others little: a byte scan of each short one.
 */
export type MessageRewriter = {
  /** What goes to the browser in place of these bytes, in order. */
  take(chunk: Buffer): readonly Buffer[];
};

/**
 * On the wire; a longer message passes unread. A shorter one is kept until it is complete. The
 * longest path has 4,096 bytes.
 */
export const READ_BYTES_MAX = 16 * 1024;

const CONTINUATION = 0;
const TEXT = 1;
const NOTHING = Buffer.alloc(0);
/** The end of each compressed message, which is not sent (RFC 7692, 7.2.2). */
const DEFLATE_TAIL = Buffer.from([0, 0, 0xff, 0xff]);

/** A message's frames that have arrived, as they came and as they were meant. */
type Fragments = { raw: Buffer[]; payload: Buffer[]; bytes: number; first: FrameHead };

/**
 * @param mark ASCII that each message to be replaced contains
 * @param rewrite the message in place of one with the mark; null: it stays
 */
export function createMessageRewriter(
  mark: string,
  rewrite: (message: string) => string | null,
): MessageRewriter {
  const messages = createMessages(mark, rewrite);
  /** A frame's beginning, until it is complete. */
  let pending = NOTHING;
  /** Bytes of the present frame that pass unread. */
  let through = 0;
  /** What is not understood passes: the browser closes the connection. */
  let isLost = false;

  /** Decides on the bytes from `at` on. @returns up to where; null: more of them is needed */
  function decide(bytes: Buffer, at: number, output: Output): number | null {
    const head = frameHead(bytes, at);
    if (head === null) return null;
    if (head === 'unknown') {
      isLost = true;
      output.insert(messages.release(), at, at);
      return bytes.length;
    }
    const begin = at + head.headLength;
    const end = begin + head.length;
    if (head.opcode >= FIRST_CONTROL) return end > bytes.length ? null : end;
    if (!messages.isRead(head)) {
      output.insert(messages.pass(head), at, at);
      through = Math.max(end - bytes.length, 0);
      return end - through;
    }
    if (end > bytes.length) return null;
    const instead = messages.take(bytes.subarray(at, end), bytes.subarray(begin, end), head);
    if (instead !== null) output.insert(instead, at, end);
    return end;
  }

  return {
    take(chunk) {
      if (isLost) return [chunk];
      const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const output = createOutput(bytes);
      let at = Math.min(through, bytes.length);
      through -= at;
      while (at < bytes.length) {
        const next = decide(bytes, at, output);
        if (next === null) break;
        at = next;
      }
      pending = Buffer.from(bytes.subarray(at));
      return output.end(at);
    },
  };
}

/** What passes of some bytes: all, but for what is inserted or left out. */
type Output = ReturnType<typeof createOutput>;

function createOutput(bytes: Buffer) {
  const passed: Buffer[] = [];
  let from = 0;
  function passUpTo(end: number): void {
    if (from < end) passed.push(bytes.subarray(from, end));
  }
  return {
    /** In place of the bytes from `begin` to before `end`. */
    insert(instead: readonly Buffer[], begin: number, end: number): void {
      if (instead.length === 0 && begin === end) return;
      passUpTo(begin);
      passed.push(...instead);
      from = end;
    },
    end(end: number): readonly Buffer[] {
      passUpTo(end);
      return passed;
    },
  };
}

/** The messages of a connection, frame by frame. */
function createMessages(mark: string, rewrite: (message: string) => string | null) {
  let fragments: Fragments | null = null;
  /** The frames to come continue a message that passes unread. */
  let isPassing = false;

  function replaced(payload: Buffer, { isCompressed, mask }: FrameHead): Buffer[] | null {
    const text = textOf(payload, isCompressed);
    const instead = text.includes(mark) ? rewrite(text.toString('utf8')) : null;
    return instead === null ? null : [dataFrame(TEXT, instead, mask)];
  }
  function release(): Buffer[] {
    const raw = fragments?.raw ?? [];
    fragments = null;
    return raw;
  }
  return {
    /** Whether a frame belongs to a message that is read. */
    isRead({ opcode, isFinal, headLength, length }: FrameHead): boolean {
      const isContinued = opcode === CONTINUATION;
      if (isContinued ? isPassing || fragments === null : opcode !== TEXT) return false;
      const before = isContinued || !isFinal ? (fragments?.bytes ?? 0) : 0;
      return before + headLength + length <= READ_BYTES_MAX;
    },
    /** A frame that is not read passes. @returns what was kept of its message */
    pass({ isFinal }: FrameHead): Buffer[] {
      isPassing = !isFinal;
      return release();
    },
    /** A whole frame that is read. @returns what passes in its place; null: itself */
    take(raw: Buffer, masked: Buffer, head: FrameHead): Buffer[] | null {
      const payload = unmask(masked, head.mask);
      if (head.isFinal && head.opcode === TEXT) return replaced(payload, head);
      fragments ??= { raw: [], payload: [], bytes: 0, first: head };
      fragments.raw.push(Buffer.from(raw));
      fragments.payload.push(payload);
      fragments.bytes += raw.length;
      if (!head.isFinal) return [];
      const { payload: parts, first } = fragments;
      const whole = release();
      return replaced(Buffer.concat(parts), first) ?? whole;
    },
    release,
  };
}

/** A message's text; nothing if it is too long, or cannot be read: then the browser refuses it. */
function textOf(payload: Buffer, isCompressed: boolean): Buffer {
  if (!isCompressed) return payload;
  try {
    return inflateRawSync(Buffer.concat([payload, DEFLATE_TAIL]), {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: READ_BYTES_MAX,
    });
  } catch {
    return NOTHING;
  }
}
