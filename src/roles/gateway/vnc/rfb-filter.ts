import { hasTooLongText, isTooLong, NO_TEXT, providesText, START_BYTES_MAX } from './cut-text.ts';
import { createPressed } from './rfb-pressed.ts';
import { messageTypes, shapes } from './rfb-messages.ts';

/**
 * Follows what a viewer sends (RFC 6143, 7.1, 7.3 and 7.5) in pieces of any length, and lets no
 * message through that steers the browser while the viewer may not. Whether a message passes is
 * decided at its first byte; one that has begun is completed, or the screen would take what comes
 * next for its rest.
 *
 * A viewer that may steer is only followed: whatever it sends passes, but for a text that is too
 * long for its screen. Once it has sent what is not known here, it is lost where its messages
 * begin, and it is refused as soon as it may not steer.
 */
export type RfbFilter = {
  /** What goes to the screen in place of these bytes; null: the viewer has to be closed. */
  take(chunk: Buffer): readonly Buffer[] | null;
  /** Why the viewer has to be closed, as it is now; null: it need not. */
  refusal(): Refusal | null;
};

type Refusal = 'not_understood' | 'text_too_long';

/** A part of what the viewer sends. */
type Part = {
  length: number;
  passes: boolean;
  /** Called with the whole part; what comes next, or null: that is not known. */
  end: (bytes: Buffer) => Next | 'text_too_long' | null;
};
type Next = { begin: Begin; instead?: Buffer | undefined };
/** The part that begins with this byte; null: none does that is known. */
type Begin = (first: number) => Part | null;

/** Longer messages are not sent. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Of longer parts only the length counts. */
const KEPT_BYTES_MAX = 256 * 1024 + 4;
const NOTHING = Buffer.alloc(0);

/** @param maySteer whether the viewer may steer now */
export function createRfbFilter(maySteer: () => boolean): RfbFilter {
  let begin: Begin = beginVersion(maySteer);
  let part: Part | null = null;
  let left = 0;
  let kept = NOTHING;
  let isLost = false;
  /** A part of a message was dropped whose rest is not known. */
  let isTorn = false;
  let isTextTooLong = false;
  function refusal(): Refusal | null {
    if (isTextTooLong) return 'text_too_long';
    return isLost && (isTorn || !maySteer()) ? 'not_understood' : null;
  }

  /** Reads bytes of one part, from `at` on. @returns how many; null: they are not known */
  function read(chunk: Buffer, at: number, passed: Passed): number | null {
    if (part === null) {
      part = begin(chunk.readUInt8(at));
      if (part === null) return null;
      left = part.length;
      // All of it is written before it is read.
      kept = part.length <= KEPT_BYTES_MAX ? Buffer.allocUnsafe(part.length) : NOTHING;
    }
    const length = Math.min(left, chunk.length - at);
    // However small the pieces are: they are not kept themselves.
    if (kept.length > 0) chunk.copy(kept, part.length - left, at, at + length);
    left -= length;
    if (part.passes) passed.range(at, at + length);
    if (left > 0) return length;
    const after = part.end(kept);
    isTextTooLong = after === 'text_too_long';
    isLost = after === null || isTextTooLong;
    isTorn = isLost && !part.passes;
    part = null;
    if (after === null || after === 'text_too_long') return length;
    begin = after.begin;
    if (after.instead !== undefined) passed.instead(after.instead);
    return length;
  }

  return {
    take(chunk) {
      const passed = createPassed(chunk);
      let at = 0;
      while (at < chunk.length && !isLost) {
        const length = read(chunk, at, passed);
        if (length === null) isLost = true;
        else at += length;
      }
      if (isLost && refusal() !== null) return null;
      passed.range(at, chunk.length);
      return passed.all();
    },
    refusal,
  };
}

/** What goes to the screen of one chunk: few long pieces, as each is a write to a socket. */
type Passed = {
  range(from: number, to: number): void;
  instead(bytes: Buffer): void;
  all(): readonly Buffer[];
};

function createPassed(chunk: Buffer): Passed {
  const pieces: Buffer[] = [];
  let start = 0;
  let end = 0;
  function close(): void {
    if (end > start) pieces.push(chunk.subarray(start, end));
    start = end;
  }
  return {
    range(from, to) {
      if (from !== end) {
        close();
        start = from;
      }
      end = to;
    },
    instead(bytes) {
      close();
      pieces.push(bytes);
    },
    all() {
      close();
      return pieces;
    },
  };
}

const VERSION = 'RFB 003.00';
/** The versions in which the viewer chooses the security type; in 3.3 the screen does. */
const MINOR_VERSIONS = '78';
const NO_PASSWORD = 1;
const VNC_AUTH = 2;
const RESPONSE_BYTES = 16;

/** Byte by byte: what is no RFB is known at its first byte, and not held back. */
function beginVersion(maySteer: () => boolean, at = 0): Begin {
  const expected = `${VERSION}?\n`;
  return (byte) => {
    const character = String.fromCharCode(byte);
    const isExpected =
      at === VERSION.length ? MINOR_VERSIONS.includes(character) : character === expected[at];
    if (!isExpected) return null;
    const begin =
      at + 1 < expected.length ? beginVersion(maySteer, at + 1) : beginSecurity(maySteer);
    return { length: 1, passes: true, end: () => ({ begin }) };
  };
}

/** Other security types encrypt what follows. */
function beginSecurity(maySteer: () => boolean): Begin {
  return (type) => {
    const begin = type === VNC_AUTH ? beginResponse(maySteer) : beginInit(maySteer);
    if (type !== VNC_AUTH && type !== NO_PASSWORD) return null;
    return { length: 1, passes: true, end: () => ({ begin }) };
  };
}

function beginResponse(maySteer: () => boolean): Begin {
  return () => ({
    length: RESPONSE_BYTES,
    passes: true,
    end: () => ({ begin: beginInit(maySteer) }),
  });
}

/** With a 0 the viewer asks the screen to close all others: one that only watches may not. */
function beginInit(maySteer: () => boolean): Begin {
  return () => {
    const passes = maySteer();
    const begin = messagesOf(maySteer);
    return {
      length: 1,
      passes,
      end: () => (passes ? { begin } : { begin, instead: Buffer.from([1]) }),
    };
  };
}

/** The messages after the handshake: each a head, and a rest whose length the head tells. */
function messagesOf(maySteer: () => boolean): Begin {
  const pressed = createPressed();
  let hasExtendedButtons = false;

  function begin(type: number): Part | null {
    const shape = shapes[type];
    if (shape === undefined) return null;
    const passes = !shape.steers || maySteer();
    return {
      length: shape.head,
      passes,
      end(head) {
        if (hasExtendedButtons && type === messageTypes.pointer && isExtended(head)) return null;
        const more = shape.more === undefined ? 0 : shape.more(head);
        if (type === messageTypes.cutText && passes && isTooLong(head.readInt32BE(4)))
          return 'text_too_long';
        if (more === null || more > MESSAGE_BYTES_MAX) return null;
        if (type === messageTypes.cutText && head.readInt32BE(4) < 0)
          return { begin: () => startOfText(more, passes) };
        if (more > 0) return { begin: () => restOf(type, more, passes) };
        if (!passes) return { begin, instead: pressed.releasedBy(head) };
        pressed.passed(head);
        return { begin };
      },
    };
  }
  /** Of an extended clipboard. Without an answer to its request the browser waits for ever. */
  function startOfText(length: number, passes: boolean): Part {
    const startLength = Math.min(length, START_BYTES_MAX);
    return {
      length: startLength,
      passes,
      end(bytes) {
        if (passes && hasTooLongText(bytes)) return 'text_too_long';
        const next = { begin, instead: !passes && providesText(bytes) ? NO_TEXT : undefined };
        const left = length - startLength;
        return left === 0 ? next : { begin: () => ({ length: left, passes, end: () => next }) };
      },
    };
  }
  function restOf(type: number, length: number, passes: boolean): Part {
    return {
      length,
      passes,
      end(bytes) {
        if (type === messageTypes.setEncodings) hasExtendedButtons = namesExtended(bytes);
        return { begin };
      },
    };
  }
  return begin;
}

/** A byte more follows if the screen knows the encoding, too, which it says to the viewer alone. */
function isExtended(pointer: Buffer): boolean {
  return (pointer.readUInt8(1) & 0x80) !== 0;
}

const EXTENDED_MOUSE_BUTTONS = -316;

function namesExtended(encodings: Buffer): boolean {
  for (let at = 0; at < encodings.length; at += 4)
    if (encodings.readInt32BE(at) === EXTENDED_MOUSE_BUTTONS) return true;
  return false;
}
