import { parseArgs } from 'node:util';
import { aggregates } from '#events/events.ts';
import { isId } from '#events/subjects.ts';
import { readMomentOrDate } from '#src/moment.ts';
import type { Command } from './command.ts';
import { Misuse } from './errors.ts';

/** What stood on the command line. A parser makes a value of a text or throws Misuse. */
export type Given = {
  required<Value>(option: string, parse: Parser<Value>): Value;
  /** null where it was not given. */
  optional<Value>(option: string, parse: Parser<Value>): Value | null;
  operand<Value>(index: number, parse: Parser<Value>): Value;
  /** null where it was not given. */
  optionalOperand<Value>(parse: Parser<Value>): Value | null;
  has(flag: string): boolean;
};
export type Parser<Value> = (text: string) => Value;

/** @throws Misuse for an option the command does not have, and operands too few or too many */
export function readGiven(command: Command, args: readonly string[]): Given {
  const { values, positionals } = parse(command, args);
  const { operands: names = [], optionalOperand: spare } = command;
  const isHelp = values['help'] === true;
  const missing = names[positionals.length];
  if (missing !== undefined && !isHelp) throw new Misuse(`${missing} is missing`);
  const most = names.length + (spare === undefined ? 0 : 1);
  if (positionals.length > most) throw new Misuse(`${command.name} takes no ${positionals[most]}`);

  function optional<Value>(option: string, parse: Parser<Value>): Value | null {
    const text = values[option];
    return typeof text === 'string' ? named(`--${option}`, text, parse) : null;
  }
  return {
    optional,
    required(option, parse) {
      const value = optional(option, parse);
      if (value === null) throw new Misuse(`--${option} is missing`);
      return value;
    },
    optionalOperand(parse) {
      const text = positionals[names.length];
      return text === undefined ? null : named(spare ?? '', text, parse);
    },
    operand: (index, parse) => named(names[index] ?? '', positionals[index] ?? '', parse),
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
    // Its first sentence says what is wrong; the rest advises what no command here takes.
    const [what = ''] = error instanceof Error ? error.message.split(/\. |\n/) : [];
    throw new Misuse(what, { cause: error });
  }
}

function named<Value>(name: string, text: string, parse: Parser<Value>): Value {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof Misuse) throw new Misuse(`${name} ${error.message}`, { cause: error });
    throw error;
  }
}

export function asId(text: string): string {
  if (!isId(text)) throw new Misuse('is no id: 1 to 64 letters, digits, - and _');
  return text;
}

export function asText(lengthMax: number): Parser<string> {
  return (text) => {
    if (text.trim() === '' || text.length > lengthMax || /\p{Cc}/u.test(text))
      throw new Misuse(`needs 1 to ${lengthMax} characters, none of them a control`);
    return text;
  };
}

export function asWhole(min: number, max: number): Parser<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Misuse(`is no whole number from ${min} to ${max}`);
    return value;
  };
}

/** A moment, in ms since the epoch. */
export function asTime(text: string): number {
  const time = text.includes('T') ? readMomentOrDate(text) : null;
  if (time === null) throw new Misuse('is no time, like 2026-11-20T09:30:00.000Z');
  return time;
}

/** The same, or a date for the moment at which it begins in UTC. */
export function asTimeOrDate(text: string): number {
  return readMomentOrDate(text) ?? asTime(text);
}

export function asOneOf<Word extends string>(words: readonly Word[]): Parser<Word> {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new Misuse(`is none of ${words.join(', ')}`);
    return word;
  };
}

/** The types of all events there are. */
export const eventTypes = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
