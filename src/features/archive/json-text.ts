const [QUOTE, BACKSLASH, MINUS, DOT, ZERO, NINE] = [0x22, 0x5c, 0x2d, 0x2e, 0x30, 0x39];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
const [COLON, COMMA, SPACE, TAB] = [0x3a, 0x2c, 0x20, 0x09];
const DEPTH_MAX = 100;

/** 1 for each byte that stands for itself in a string. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < SPACE || byte === QUOTE || byte === BACKSLASH ? 0 : 1,
);

let bytes: Uint8Array = new Uint8Array();
let at = 0;

/**
 * Whether bytes are JSON text on one line. False is no proof of the opposite: values that are
 * nested deeply are not examined. It takes a fifth of the time of JSON.parse, which creates the
 * values; an archive needs none of them.
 * @param text must be longer than `to`: the byte at `to` is overwritten with a zero
 */
export function isOneLineJson(text: Uint8Array, from: number, to: number): boolean {
  // Ends every loop below: it is part of no value.
  text[to] = 0;
  bytes = text;
  at = from;
  const isJson = value(0) && at === to;
  bytes = new Uint8Array();
  return isJson;
}

function value(depth: number): boolean {
  skipSpace();
  const isValue = valueAt(bytes[at] ?? 0, depth);
  skipSpace();
  return isValue;
}

function valueAt(first: number, depth: number): boolean {
  if (first === QUOTE) return string();
  if (first === OPEN_OBJECT) return depth < DEPTH_MAX && object(depth + 1);
  if (first === OPEN_ARRAY) return depth < DEPTH_MAX && array(depth + 1);
  if (first === 0x74) return word('true');
  if (first === 0x66) return word('false');
  if (first === 0x6e) return word('null');
  return number();
}

function object(depth: number): boolean {
  at += 1;
  skipSpace();
  if (bytes[at] === CLOSE_OBJECT) return take(CLOSE_OBJECT);
  do {
    skipSpace();
    if (bytes[at] !== QUOTE || !string()) return false;
    skipSpace();
    if (!take(COLON) || !value(depth)) return false;
  } while (take(COMMA));
  return take(CLOSE_OBJECT);
}

function array(depth: number): boolean {
  at += 1;
  skipSpace();
  if (bytes[at] === CLOSE_ARRAY) return take(CLOSE_ARRAY);
  do {
    if (!value(depth)) return false;
  } while (take(COMMA));
  return take(CLOSE_ARRAY);
}

function string(): boolean {
  at += 1;
  for (;;) {
    // Most bytes are read here; locals halve the time.
    const text = bytes;
    let next = at;
    while (IS_PLAIN[text[next] as number] === 1) next += 1;
    at = next + 1;
    if (text[next] === QUOTE) return true;
    if (text[next] !== BACKSLASH || !escape()) return false;
  }
}

function escape(): boolean {
  const byte = bytes[at] as number;
  at += 1;
  // " / \ b f n r t
  if ([QUOTE, 0x2f, BACKSLASH, 0x62, 0x66, 0x6e, 0x72, 0x74].includes(byte)) return true;
  if (byte !== 0x75) return false;
  for (const end = at + 4; at < end; at += 1) {
    const digit = bytes[at] as number;
    const letter = digit | 0x20;
    if (!isDigit(digit) && (letter < 0x61 || letter > 0x66)) return false;
  }
  return true;
}

function number(): boolean {
  take(MINUS);
  if (!take(ZERO) && !digits()) return false;
  if (take(DOT) && !digits()) return false;
  if (((bytes[at] as number) | 0x20) !== 0x65) return true;
  at += 1;
  if (!take(0x2b)) take(MINUS);
  return digits();
}

function digits(): boolean {
  const from = at;
  while (isDigit(bytes[at] as number)) at += 1;
  return at > from;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function word(text: string): boolean {
  for (let index = 0; index < text.length; index += 1)
    if (!take(text.charCodeAt(index))) return false;
  return true;
}

function take(byte: number): boolean {
  if (bytes[at] !== byte) return false;
  at += 1;
  return true;
}

function skipSpace(): void {
  while (bytes[at] === SPACE || bytes[at] === TAB) at += 1;
}
