/** How many bytes become base64 at a time. */
const BLOCK_BYTES = 48 * 1024;

/** The bytes as base64, as they come. */
export async function* base64Of(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of bytes) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    if (rest.length < BLOCK_BYTES) continue;
    // Else padding would stand in the middle.
    const whole = rest.length - (rest.length % 3);
    yield rest.toString('base64', 0, whole);
    rest = rest.subarray(whole);
  }
  yield rest.toString('base64');
}

/** The length of so many bytes in base64. */
export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}
