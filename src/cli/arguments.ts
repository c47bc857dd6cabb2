import { parseArgs } from 'node:util';
import { aggregates } from '#events/events.ts';
import { isId } from '#events/subjects.ts';
import { readMomentOrDate } from '#src/moment.ts';
import type { Arguments, Command, Parser } from './command.ts';
import { UsageError } from './errors.ts';

/** @throws UsageError for an unknown option, a missing operand or one too many */
export function readArguments(command: Command, args: readonly string[]): Arguments {
  const { values, positionals } = parse(command, args);
  const { operands: names = [], optionalOperand: extra } = command;
  const isHelp = values['help'] === true;
  const missing = names[positionals.length];
  if (missing !== undefined && !isHelp) throw new UsageError(`${missing} is missing`);
  const most = command.repeatsLast === true ? Infinity : names.length + (extra ? 1 : 0);
  if (positionals.length > most)
    throw new UsageError(`${command.name} takes no ${positionals[most]}`);

  function optional<Value>(option: string, parse: Parser<Value>): Value | null {
    const text = values[option];
    return typeof text === 'string' ? named(`--${option}`, text, parse) : null;
  }
  return {
    optional,
    required(option, parse) {
      const value = optional(option, parse);
      if (value === null) throw new UsageError(`--${option} is missing`);
      return value;
    },
    optionalOperand(parse) {
      const text = positionals[names.length];
      return text === undefined ? null : named(extra ?? '', text, parse);
    },
    operand: (index, parse) => named(names[index] ?? '', positionals[index] ?? '', parse),
    everyOperand: (parse) =>
      positionals.map((text, index) => named(names[index] ?? names.at(-1) ?? '', text, parse)),
    has: (flag) => values[flag] === true,
  };
}

type Parsed = { values: Record<string, string | boolean | undefined>; positionals: string[] };

function parse({ options }: Command, args: readonly string[]): Parsed {
  const known = Object.entries(options).map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const;
  });
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...Object.fromEntries(known),
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    // Node's first sentence names the fault; the rest suggests `--`, which no command here needs.
    const [what = ''] = error instanceof Error ? error.message.split(/\. |\n/) : [];
    throw new UsageError(what, { cause: error });
  }
}

function named<Value>(name: string, text: string, parse: Parser<Value>): Value {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof UsageError)
      throw new UsageError(`${name} ${error.message}`, { cause: error });
    throw error;
  }
}

export function parseId(text: string): string {
  if (!isId(text)) throw new UsageError('is not an id: 1 to 64 letters, digits, - and _');
  return text;
}

export function textUpTo(lengthMax: number): Parser<string> {
  return (text) => {
    if (text.trim() === '' || text.length > lengthMax || /\p{Cc}/u.test(text))
      throw new UsageError(`needs 1 to ${lengthMax} characters without control characters`);
    return text;
  };
}

export function integer(min: number, max: number): Parser<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new UsageError(`is not a whole number from ${min} to ${max}`);
    return value;
  };
}

/** An RFC 3339 time, as ms since the epoch. */
export function parseTime(text: string): number {
  const time = text.includes('T') ? readMomentOrDate(text) : null;
  if (time === null) throw new UsageError('is not a time, as 2026-11-20T09:30:00.000Z');
  return time;
}

/** An RFC 3339 time or a date, which stands for its first millisecond in UTC. */
export function parseTimeOrDate(text: string): number {
  return readMomentOrDate(text) ?? parseTime(text);
}

export function oneOf<Word extends string>(words: readonly Word[]): Parser<Word> {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new UsageError(`is none of ${words.join(', ')}`);
    return word;
  };
}

/** All event types. */
export const eventTypes = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
