import type { OpenService } from '#src/bootstrap/cli.ts';
import type { Config } from '#src/config/config.ts';
import type { Rejected } from '#src/errors.ts';
import type { Given } from './arguments.ts';

/** One command of `bss`: what it takes, and what it does. */
export type Command = {
  /** As it is typed: `orgs create`. */
  name: string;
  summary: string;
  /** Names of what stands without an option, all needed. */
  operands?: readonly string[];
  /** What may stand behind them. */
  optionalOperand?: string;
  options: Readonly<Record<string, Option>>;
  /** True where it may be what comes first of all, so that it makes the log it writes to. */
  makesLog?: boolean;
  /**
   * Reads what was given, before anything is asked of the service.
   * @throws Misuse
   */
  read(given: Given): Action;
  /** What it does without a service; null where it needs one for what was given. */
  readAlone?(given: Given): (() => Promise<Output | Rejected>) | null;
};

export type Option = {
  /** What stands for its value in the help, `ID`; left out: it takes none. */
  value?: string;
  meaning: string;
};

/** Does it; null where it has printed all there is to print. */
export type Action = (session: CommandSession) => Promise<Output | Rejected | null>;

export type CommandSession = Omit<OpenService, typeof Symbol.asyncDispose> & {
  config: Config;
  isJson: boolean;
  /** For what is no refusal but has to be known: on stderr, and the command's exit code is 1. */
  warn: (text: string) => void;
};

/**
 * The result, for programs and for people. `differs`: what was compared does not agree, so that the
 * command's exit code is 1.
 */
export type Output = { json: unknown; text: string; differs?: boolean };
