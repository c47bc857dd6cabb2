import { messageTypes } from './rfb-messages.ts';

/**
 * The keys and buttons that a viewer has pressed. When it may not steer any more, it may still
 * release them: the next person would type with a Shift that was never released.
 */
export type Pressed = {
  /** A key or pointer message went to the screen. */
  passed(message: Buffer): void;
  /** What goes to the screen if this message does not: the release of what was pressed before. */
  releasedBy(message: Buffer): Buffer | undefined;
};

/** A keyboard has fewer; a viewer that presses more may not release them. */
const KEYS_MAX = 128;

export function createPressed(): Pressed {
  const keys = new Set<number>();
  let pointer: Buffer | null = null;

  return {
    passed(message) {
      if (message.readUInt8() === messageTypes.pointer)
        pointer = message.readUInt8(1) === 0 ? null : message;
      const key = keyOf(message);
      if (key === null) return;
      if (!key.isDown) keys.delete(key.symbol);
      else if (keys.size < KEYS_MAX) keys.add(key.symbol);
    },
    releasedBy(message) {
      const key = keyOf(message);
      if (key !== null) return !key.isDown && keys.delete(key.symbol) ? message : undefined;
      const isPointer = message.readUInt8() === messageTypes.pointer;
      if (!isPointer || pointer === null || message.readUInt8(1) !== 0) return undefined;
      // Where it was pressed, and not where the viewer has moved to since.
      const release = Buffer.from(pointer);
      release.writeUInt8(0, 1);
      pointer = null;
      return release;
    },
  };
}

/** The key of a message; null: it is about no key. */
function keyOf(message: Buffer): { symbol: number; isDown: boolean } | null {
  switch (message.readUInt8()) {
    case messageTypes.key:
      return { isDown: message.readUInt8(1) !== 0, symbol: message.readUInt32BE(4) };
    case messageTypes.qemu:
      return { isDown: message.readUInt16BE(2) !== 0, symbol: message.readUInt32BE(4) };
    default:
      return null;
  }
}
