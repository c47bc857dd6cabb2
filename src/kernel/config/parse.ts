/** A variable that is unknown, missing or malformed; the message begins with its name. */
export class BadConfig extends Error {
  override readonly name = 'BadConfig';
}

/** How the text of a variable is read. */
export type Form<Value> = {
  /** What it may be, as `--help` shows it; empty: the meaning says it, or any text will do. */
  says: string;
  /** @throws BadConfig */
  parse: (text: string, name: string) => Value;
};

/** A variable of the environment. */
export type Variable<Value = unknown> = {
  form: Form<Value>;
  /** Its text where it is not set or empty. */
  fallback: string;
  meaning: string;
};
export type Variables = Record<string, Variable>;

export function variable<Value>(
  form: Form<Value>,
  fallback: string,
  meaning: string,
): Variable<Value> {
  return { form, fallback, meaning };
}

/** The values of variables by name. Each is read, and may throw BadConfig, when it is asked for. */
export type Values<Table extends Variables> = {
  readonly [Name in keyof Table]: Table[Name] extends Variable<infer Value> ? Value : never;
};

type Env = Record<string, string | undefined>;

/** @param env a variable's text is trimmed */
export function valuesOf<Table extends Variables>(table: Table, env: Env): Values<Table> {
  const values = {};
  for (const [name, { form, fallback }] of Object.entries(table))
    Object.defineProperty(values, name, {
      get: () => form.parse(env[name]?.trim() || fallback, name),
    });
  return values as Values<Table>;
}

/** Any text; it is checked where it is used. */
export const text: Form<string> = { says: '', parse: (given) => given };

/** null where the text is empty. */
export function optional<Value>({ says, parse }: Form<Value>): Form<Value | null> {
  return { says, parse: (given, name) => (given === '' ? null : parse(given, name)) };
}

/** Several with commas; none where the text is empty. */
export function list<Value>({ says, parse }: Form<Value>): Form<Value[]> {
  return {
    says,
    parse: (given, name) =>
      given === '' ? [] : given.split(',').map((part) => parse(part.trim(), name)),
  };
}

/** A text that is as the check wants it. @param what ends the sentence that begins with the text */
export function matching(isGood: (given: string) => boolean, what: string): Form<string> {
  return {
    says: '',
    parse(given, name) {
      if (!isGood(given)) throw new BadConfig(`${name}: ${given} ${what}`);
      return given;
    },
  };
}

export function integer(min: number, max: number): Form<number> {
  return {
    says: `${min} to ${max}`,
    parse(given, name) {
      const value = Number(given);
      if (!/^\d+$/.test(given) || value < min || value > max)
        throw new BadConfig(`${name}: ${given} is not a whole number from ${min} to ${max}`);
      return value;
    },
  };
}

export const port = integer(1, 65_535);

const MIB = 1024 ** 2;

/** A number of MiB, in bytes. */
export function mebibytes(min: number, max: number): Form<number> {
  const { says, parse } = integer(min, max);
  return { says, parse: (given, name) => parse(given, name) * MIB };
}

/** A decimal number. */
export function decimal(min: number, max: number): Form<number> {
  return {
    says: `${min} to ${max}`,
    parse(given, name) {
      const value = Number(given);
      if (!/^(\d+|\d*\.\d+)$/.test(given) || value < min || value > max)
        throw new BadConfig(`${name}: ${given} is not from ${min} to ${max}`);
      return value;
    },
  };
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function milliseconds(given: string, name: string): number {
  const parts = /^(\d{1,9})(ms|s|m|h|d)?$/.exec(given);
  const unit = parts?.[2] ?? (name.endsWith('_MS') ? 'ms' : undefined);
  if (!parts || !unit)
    throw new BadConfig(`${name}: ${given} is not like 500ms, 3s, 5m, 72h or 30d`);
  return Number(parts[1]) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/**
 * `500ms`, `3s`, `5m`, `72h`, `30d` in milliseconds; a bare number is milliseconds where the name
 * says so.
 */
export function duration(min = '0s'): Form<number> {
  return {
    says: min === '0s' ? '' : `from ${min}`,
    parse(given, name) {
      const ms = milliseconds(given, name);
      if (ms < milliseconds(min, name))
        throw new BadConfig(`${name}: ${given} is less than ${min}`);
      return ms;
    },
  };
}

/** The maximum of Node's timers; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A duration that one timer can wait. */
export function wait(min = '0s'): Form<number> {
  const { says, parse } = duration(min);
  return {
    says: says === '' ? 'up to 596h' : `${says} to 596h`,
    parse(given, name) {
      const ms = parse(given, name);
      if (ms > TIMER_MS_MAX)
        throw new BadConfig(`${name}: ${given} is longer than 596h, the maximum of a timer`);
      return ms;
    },
  };
}

export function url(...protocols: string[]): Form<string> {
  const wanted = `${protocols.join('// or ')}//`;
  return {
    says: '',
    parse(given, name) {
      const address = URL.parse(given);
      const isGood =
        address !== null &&
        protocols.includes(address.protocol) &&
        address.hostname !== '' &&
        address.search === '' &&
        address.hash === '';
      if (!isGood)
        throw new BadConfig(`${name}: ${withoutLogin(given)} is not a ${wanted} address`);
      return given.replace(/\/+$/, '');
    },
  };
}

/** The address without a user and password, even if it is malformed: they stand before an @. */
function withoutLogin(given: string): string {
  return given.replace(/^.*@/s, '…@');
}

export function oneOf<const Word extends string>(...words: Word[]): Form<Word> {
  return {
    says: words.join(', '),
    parse(given, name) {
      const word = words.find((known) => known === given);
      if (word === undefined)
        throw new BadConfig(`${name}: ${given} is none of ${words.join(', ')}`);
      return word;
    },
  };
}

/** Whether it is `yes`. */
export const yesOrNo: Form<boolean> = {
  says: 'yes, no',
  parse: (given, name) => oneOf('yes', 'no').parse(given, name) === 'yes',
};

export function secret(lengthMin: number): Form<string> {
  return {
    says: `${lengthMin} to 512 characters`,
    parse(given, name) {
      if (!new RegExp(`^[\\x21-\\x7e]{${lengthMin},512}$`).test(given))
        throw new BadConfig(
          `${name}: needs ${lengthMin} to 512 printable characters without spaces`,
        );
      return given;
    },
  };
}

/** A JSON object's entries. */
export const jsonEntries: Form<[string, unknown][]> = {
  says: '',
  parse(given, name) {
    let value: unknown;
    try {
      value = JSON.parse(given);
    } catch {
      throw new BadConfig(`${name}: is not JSON`);
    }
    return entries(name, value);
  },
};

/** @throws BadConfig if it is no JSON object */
export function entries(name: string, value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadConfig(`${name}: is not a JSON object`);
  return Object.entries(value);
}

const UNIT_BYTES = { KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** `64KB`, `200MB` or `1GB`, in powers of 1,024; from 1 KB to 1,024 GB. */
export const bytes: Form<number> = {
  says: '1KB to 1024GB',
  parse(given, name) {
    const parts = /^(\d{1,6})(KB|MB|GB)$/.exec(given);
    const value = Number(parts?.[1]) * UNIT_BYTES[parts?.[2] as keyof typeof UNIT_BYTES];
    if (!parts || value < UNIT_BYTES.KB || value > 1_024 * UNIT_BYTES.GB)
      throw new BadConfig(`${name}: ${given} is not like 64KB, 200MB or 1GB, up to 1024GB`);
    return value;
  },
};
