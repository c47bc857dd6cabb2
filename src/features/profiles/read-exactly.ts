/** An object that was damaged, cut off or moved, or that another master key encrypted. */
export class ArchiveDamaged extends Error {
  override readonly name = 'ArchiveDamaged';
}

/**
 * Reads exact numbers of bytes; only those that two chunks have are copied. `take` throws
 * ArchiveDamaged where there are fewer.
 */
export function readExactly(source: AsyncIterable<Uint8Array>) {
  const chunks = source[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  async function fill(bytes: number): Promise<boolean> {
    if (rest.length >= bytes) return true;
    const parts = [rest];
    let length = rest.length;
    while (length < bytes) {
      const next = await chunks.next();
      if (next.done === true) break;
      const { buffer, byteOffset, byteLength } = next.value;
      parts.push(Buffer.from(buffer, byteOffset, byteLength));
      length += byteLength;
    }
    rest = Buffer.concat(parts);
    return length >= bytes;
  }
  return {
    async take(bytes: number): Promise<Buffer> {
      if (!(await fill(bytes))) throw new ArchiveDamaged('it is cut off');
      const taken = rest.subarray(0, bytes);
      rest = rest.subarray(bytes);
      return taken;
    },
    isAtEnd: async () => !(await fill(1)),
  };
}
