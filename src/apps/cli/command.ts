import type { OpenService } from '#src/start/cli.ts';
import type { Config } from '#src/kernel/config/config.ts';
import type { Rejection } from '#src/kernel/errors.ts';

/** The parsed command line. A parser turns a text into a value or throws UsageError. */
export type Arguments = {
  required<Value>(option: string, parse: Parser<Value>): Value;
  /** null if the option is not given. */
  optional<Value>(option: string, parse: Parser<Value>): Value | null;
  operand<Value>(index: number, parse: Parser<Value>): Value;
  /** null if the operand is not given. */
  optionalOperand<Value>(parse: Parser<Value>): Value | null;
  /** All operands, of a command whose last one may be repeated. */
  everyOperand<Value>(parse: Parser<Value>): readonly Value[];
  has(flag: string): boolean;
};
export type Parser<Value> = (text: string) => Value;

/** How a command is typed: all that its help says. */
export type Usage = {
  /** As typed: `orgs create`. */
  name: string;
  summary: string;
  /** Names of the required operands. */
  operands?: readonly string[];
  /** Name of an operand that may follow them. */
  optionalOperand?: string;
  /** Whether the last of the required operands may be given several times. */
  repeatsLast?: boolean;
  options: Readonly<Record<string, Option>>;
};

/** A command and where its code is, which is loaded when the command is to run. */
export type KnownCommand = Usage & { load(): Promise<Command> };

/** What a command does with its arguments. */
export type Command = {
  /** True if the command may run before the first start: it creates the streams if missing. */
  makesStreams?: boolean;
  /**
   * Parses the arguments, before the service is contacted.
   * @throws UsageError
   */
  read(options: Arguments): Action;
  /** The action of a command that needs no event store; null if these arguments need one. */
  readAlone?(options: Arguments): (() => Promise<Output | Rejection | null>) | null;
};

export type Option = {
  /** Placeholder of its value in the help, as `ID`; undefined: a flag. */
  value?: string;
  meaning: string;
};

/** Runs the command; null if it has printed its output itself. */
export type Action = (session: CommandSession) => Promise<Output | Rejection | null>;

export type CommandSession = Omit<OpenService, typeof Symbol.asyncDispose> & {
  config: Config;
  isJson: boolean;
  /** Reports a problem on stderr and sets exit code 1; the command goes on. */
  warn: (text: string) => void;
};

/**
 * The result, for programs and for people. `differs`: a comparison found differences, so that the
 * exit code is 1.
 */
export type Output = { json: unknown; text: string; differs?: boolean };
