/** Bytes in one piece of memory, however small the pieces are in which they come. */
export type Growing = {
  add(piece: Uint8Array): void;
  bytes(): number;
  /** All of them; valid until more are added. */
  all(): Buffer;
};

const FIRST_BYTES = 16 * 1024;

/**
 * Each piece by itself would take some 200 bytes, also one of a byte.
 * @param bytesMax what the caller adds at most
 */
export function createGrowing(bytesMax: number): Growing {
  let memory = Buffer.alloc(FIRST_BYTES);
  let filled = 0;
  return {
    add(piece) {
      const needed = filled + piece.length;
      if (needed > memory.length) {
        const larger = Buffer.alloc(Math.max(needed, Math.min(2 * memory.length, bytesMax)));
        memory.copy(larger, 0, 0, filled);
        memory = larger;
      }
      memory.set(piece, filled);
      filled = needed;
    },
    bytes: () => filled,
    all: () => memory.subarray(0, filled),
  };
}
