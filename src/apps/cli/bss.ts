/**
 * The command line client: finds the command, answers `--help` and `--version` itself, and loads
 * the code of any other command when it is to run. What is imported here is what each call pays.
 */
import type { Usage } from './command.ts';
import { UsageError } from './errors.ts';
import { helpOn, helpOnAll } from './help.ts';
import { DONE, NOT_UNDERSTOOD, print, printError } from './print.ts';
import { readArguments } from './read-arguments.ts';
import { allCommands } from './usage/all.ts';

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  // A reader that closes the pipe early (`| head`) is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const isJson = args.includes('--json');
  process.exitCode = DONE;
  try {
    await dispatch(named(args), isJson);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.exitCode = NOT_UNDERSTOOD;
    printError('INVALID_REQUEST', error.message, isJson);
  }
}

/** `bss parked` is `bss dead-letters`. */
function named(args: readonly string[]): readonly string[] {
  return args[0] === 'parked' ? ['dead-letters', ...args.slice(1)] : args;
}

async function dispatch(args: readonly string[], isJson: boolean): Promise<void> {
  const known = allCommands.find(({ name }) =>
    name.split(' ').every((word, at) => word === args[at]),
  );
  if (known === undefined) return answerWithoutCommand(args);
  const options = readArguments(known, args.slice(known.name.split(' ').length));
  if (options.has('help')) return print(helpOn(known));
  const { runCommand } = await import('./run-command.ts');
  await runCommand(known, options, isJson);
}

async function answerWithoutCommand(args: readonly string[]): Promise<void> {
  if (args[0] === '--version') return print(await readVersion());
  const group = allCommands.filter(({ name }) => name.startsWith(`${args[0]} `));
  const isHelp = args.includes('--help') || args.includes('-h');
  if (!isHelp) throw new UsageError(whatIsWrong(args, group));
  print(helpOnAll(group.length === 0 ? allCommands : group));
}

async function readVersion(): Promise<string> {
  const { default: facts } = await import('../../../package.json', { with: { type: 'json' } });
  return facts.version;
}

function whatIsWrong([first, second]: readonly string[], group: readonly Usage[]): string {
  const hint = 'bss --help lists the commands';
  if (first === undefined) return `a command is missing; ${hint}`;
  if (group.length === 0) return `unknown command ${first}; ${hint}`;
  const words = group.map(({ name }) => name.split(' ')[1]).join(', ');
  return `after ${first} comes one of ${words}, not ${second ?? 'nothing'}`;
}
