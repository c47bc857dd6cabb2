/** What bounds the JSON of somebody else: a client, a browser, a page, another server. */
export type ForeignBounds = {
  /** Bytes of UTF-8; of a text its UTF-16 units, which are never more. */
  bytesMax: number;
  /** How deep arrays and objects may be nested, where what reads them calls itself. */
  depthMax?: number;
};

/**
 * Parses JSON that somebody else wrote; nothing else in the service may (test/tidy.test.ts). V8
 * needs some 10 ms and 8 MB for the worst 256 KiB, and this thread does nothing else meanwhile.
 * @throws RangeError beyond a bound, before anything is parsed; SyntaxError where it is no JSON
 */
export function parseForeignJson(input: string | Uint8Array, bounds: ForeignBounds): unknown {
  const { bytesMax, depthMax = Infinity } = bounds;
  if (input.length > bytesMax) throw new RangeError(`JSON of more than ${bytesMax} bytes`);
  const text = typeof input === 'string' ? input : DECODER.decode(input);
  if (depthMax < Infinity && isDeeper(text, depthMax))
    throw new RangeError(`JSON that is nested deeper than ${depthMax}`);
  return JSON.parse(text) as unknown;
}

/** Leaves out a byte order mark. */
const DECODER = new TextDecoder();

function isDeeper(text: string, depthMax: number): boolean {
  let [depth, isInString] = [0, false];
  for (let at = 0; at < text.length; at += 1) {
    const mark = text[at];
    if (isInString) {
      if (mark === '\\') at += 1;
      else if (mark === '"') isInString = false;
    } else if (mark === '"') isInString = true;
    else if (mark === '[' || mark === '{') depth += 1;
    else if (mark === ']' || mark === '}') depth -= 1;
    if (depth > depthMax) return true;
  }
  return false;
}
