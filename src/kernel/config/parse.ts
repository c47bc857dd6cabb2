/** Returns a variable's text, trimmed, or its default if it is not set. */
export type Read<Name extends string = string> = (name: Name) => string;

/** A variable that is unknown, missing or malformed; the message begins with its name. */
export class BadConfig extends Error {
  override readonly name = 'BadConfig';
}

export function integer<Name extends string>(
  name: Name,
  read: Read<Name>,
  min: number,
  max: number,
): number {
  const text = read(name);
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new BadConfig(`${name}: ${text} is not a whole number from ${min} to ${max}`);
  return value;
}

export function share<Name extends string>(name: Name, read: Read<Name>): number {
  const text = read(name);
  const value = Number(text);
  if (!/^(\d+|\d*\.\d+)$/.test(text) || value > 1)
    throw new BadConfig(`${name}: ${text} is not from 0 to 1`);
  return value;
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The maximum of Node's timers; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A duration that one timer can wait. */
export function wait<Name extends string>(name: Name, read: Read<Name>): number {
  const ms = duration(name, read);
  if (ms > TIMER_MS_MAX)
    throw new BadConfig(`${name}: ${read(name)} is longer than 596h, the maximum of a timer`);
  return ms;
}

/** `500ms`, `3s`, `5m`, `72h`, `30d`; a bare number is milliseconds where the name says so. */
export function duration<Name extends string>(name: Name, read: Read<Name>): number {
  const parts = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(read(name));
  const unit = parts?.[2] ?? (name.endsWith('_MS') ? 'ms' : undefined);
  if (!parts || !unit)
    throw new BadConfig(`${name}: ${read(name)} is not like 500ms, 3s, 5m, 72h or 30d`);
  return Number(parts[1]) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

export function url<Name extends string>(
  name: Name,
  read: Read<Name>,
  protocols: readonly string[],
): string | null {
  const text = read(name);
  if (text === '') return null;
  const address = URL.parse(text);
  const isGood =
    address !== null &&
    protocols.includes(address.protocol) &&
    address.hostname !== '' &&
    address.search === '' &&
    address.hash === '';
  if (!isGood)
    throw new BadConfig(
      `${name}: ${withoutLogin(text)} is not a ${protocols.join('// or ')}// address`,
    );
  return text.replace(/\/+$/, '');
}

/** The address without a user and password, even if it is malformed: they stand before an @. */
function withoutLogin(text: string): string {
  return text.replace(/^.*@/s, '…@');
}

export function oneOf<Name extends string, Word extends string>(
  name: Name,
  read: Read<Name>,
  words: Word[],
): Word {
  const word = words.find((known) => known === read(name));
  if (word === undefined)
    throw new BadConfig(`${name}: ${read(name)} is none of ${words.join(', ')}`);
  return word;
}

export function secret<Name extends string>(
  name: Name,
  optional: (name: Name) => string | null,
  lengthMin: number,
): string | null {
  const value = optional(name);
  if (value !== null && !new RegExp(`^[\\x21-\\x7e]{${lengthMin},512}$`).test(value))
    throw new BadConfig(`${name}: needs ${lengthMin} to 512 printable characters without spaces`);
  return value;
}

export function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new BadConfig(`${name}: is not JSON`);
  }
}

export function entries(name: string, value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadConfig(`${name}: is not a JSON object`);
  return Object.entries(value);
}

const UNIT_BYTES = { KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** `64KB`, `200MB` or `1GB`, in powers of 1,024; from 1 KB to 1,024 GB. */
export function bytes<Name extends string>(name: Name, read: Read<Name>): number {
  const parts = /^(\d{1,6})(KB|MB|GB)$/.exec(read(name));
  const value = Number(parts?.[1]) * UNIT_BYTES[parts?.[2] as keyof typeof UNIT_BYTES];
  if (!parts || value < UNIT_BYTES.KB || value > 1_024 * UNIT_BYTES.GB)
    throw new BadConfig(`${name}: ${read(name)} is not like 64KB, 200MB or 1GB, up to 1024GB`);
  return value;
}
