import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { allCommands } from '#src/apps/cli/usage/all.ts';
import { isRejection } from '#src/kernel/errors.ts';

/** Reads the command line of a `bss` command that asks the API, and returns what runs it. */
export async function readApiCommand(name: string, operands: readonly string[], url: string) {
  const known = allCommands.find((one) => one.name === name);
  if (known === undefined) throw new Error(`no command ${name}`);
  const command = await known.load();
  const run = command.readAlone?.(readArguments(known, [...operands, '--url', url]));
  if (run === undefined || run === null) throw new Error('it does not ask the API');
  return run;
}

/** Runs it, with the key in BSS_API_KEY: its JSON and text, or the refusal. */
export async function runApiCommand(name: string, operands: readonly string[], url: string) {
  const outcome = await (await readApiCommand(name, operands, url))();
  if (outcome === null) throw new Error('nothing is printed');
  return isRejection(outcome)
    ? { refusal: outcome.code, message: outcome.message ?? '' }
    : { json: outcome.json as Record<string, never>, text: outcome.text };
}
