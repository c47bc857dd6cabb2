/** A message of a viewer: bytes whose number is known, and more, of which they tell the number. */
type Shape = {
  /** Keys, pointer, clipboard, size or power: what changes the screen for everybody. */
  steers: boolean;
  head: number;
  /** Absent: none. Null: the message is not known. */
  more?: (head: Buffer) => number | null;
};

export const messageTypes = { setEncodings: 2, key: 4, pointer: 5, cutText: 6, qemu: 255 } as const;

/** The messages that TigerVNC reads, and that noVNC sends, by their first byte. */
export const shapes: Readonly<Record<number, Shape>> = {
  // SetPixelFormat
  0: { steers: false, head: 20 },
  [messageTypes.setEncodings]: {
    steers: false,
    head: 4,
    more: (head) => 4 * head.readUInt16BE(2),
  },
  // FramebufferUpdateRequest
  3: { steers: false, head: 10 },
  [messageTypes.key]: { steers: true, head: 8 },
  [messageTypes.pointer]: { steers: true, head: 6 },
  // ClientCutText; the length of an extended one is negative.
  [messageTypes.cutText]: {
    steers: true,
    head: 8,
    more: (head) => Math.abs(head.readInt32BE(4)),
  },
  // EnableContinuousUpdates
  150: { steers: false, head: 10 },
  // ClientFence
  248: { steers: false, head: 9, more: (head) => head.readUInt8(8) },
  // xvp: shuts the machine down, or restarts it
  250: { steers: true, head: 4 },
  // SetDesktopSize
  251: { steers: true, head: 8, more: (head) => 16 * head.readUInt8(6) },
  // The key event of QEMU; its other messages have other lengths.
  [messageTypes.qemu]: {
    steers: true,
    head: 12,
    more: (head) => (head.readUInt8(1) === 0 ? 0 : null),
  },
};
