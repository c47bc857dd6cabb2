import { parseArgs } from 'node:util';
import type { Arguments, Parser, Usage } from './command.ts';
import { UsageError } from './errors.ts';

/** @throws UsageError for an unknown option, a missing operand or one too many */
export function readArguments(command: Usage, args: readonly string[]): Arguments {
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

function parse({ options }: Usage, args: readonly string[]): Parsed {
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
