/** What bounds the JSON of somebody else: a client, a browser, a page, another server. */
export type ForeignBounds = {
  bytesMax: number;
  /** How deep arrays and objects may be nested, where what reads them calls itself. */
  depthMax?: number;
};

/**
 * A long text is parsed only if it has fewer values: so many take some 60 ms and 9 MB, while 99 MB
 * of `[],[],…` take 40 s and 2.6 GB. A picture in base64 is one value.
 */
const VALUES_MAX = 200_000;
/** Shorter texts have fewer in any case. */
const COUNTED_FROM = VALUES_MAX;

/**
 * Parses JSON that somebody else wrote; nothing else in the service may (test/structure.test.ts).
 * @throws RangeError beyond a bound, before anything is parsed; SyntaxError where it is no JSON
 */
export function parseForeignJson(input: string | Uint8Array, bounds: ForeignBounds): unknown {
  const { bytesMax, depthMax = Infinity } = bounds;
  if (input.length > bytesMax) throw new RangeError(`JSON of more than ${bytesMax} bytes`);
  if (input.length > COUNTED_FROM || depthMax < Infinity)
    requireSimple(typeof input === 'string' ? Buffer.from(input) : input, depthMax);
  return JSON.parse(typeof input === 'string' ? input : DECODER.decode(input)) as unknown;
}

/** Leaves out a byte order mark. */
const DECODER = new TextDecoder();

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Counts what begins a value, outside of texts; all of these marks are ASCII. */
function requireSimple(bytes: Uint8Array, depthMax: number): void {
  let [values, depth, isInText] = [0, 0, false];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === COMMA) values += 1;
    else if (byte === ARRAY || byte === OBJECT) {
      values += 1;
      depth += 1;
      if (depth > depthMax) throw new RangeError(`JSON that is nested deeper than ${depthMax}`);
    } else if (byte === ARRAY_END || byte === OBJECT_END) depth -= 1;
  }
  if (values > VALUES_MAX) throw new RangeError(`JSON of more than ${VALUES_MAX} values`);
}

/** @throws SyntaxError if a value that was parsed is no object */
export function readObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SyntaxError('an object is missing');
  return value as Record<string, unknown>;
}

/** @throws SyntaxError if a value that was parsed is no text */
export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new SyntaxError('a text is missing');
  return value;
}
