import { openService } from '#src/start/cli.ts';
import { findService } from '#src/start/find-service.ts';
import type { Output } from '#src/apps/cli/command.ts';
import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { allCommands } from '#src/apps/cli/usage/all.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import type { Rejection } from '#src/kernel/errors.ts';

/**
 * Runs a command of `bss` on a service in this process: a process of its own takes a second of
 * processor time. What a command prints, and its exit codes, are for tests that start one.
 * @returns null if it needs a process: what may run without a service reads its own environment
 * @throws UsageError, or what keeps it from the service
 */
export async function tryHere(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<Output | Rejection | null> {
  const known = allCommands.find(({ name }) =>
    name.split(' ').every((word, at) => word === args[at]),
  );
  if (known === undefined) throw new Error(`no command ${args.join(' ')}`);
  const options = readArguments(known, args.slice(known.name.split(' ').length));
  const command = await known.load();
  if (command.readAlone !== undefined) return null;
  const action = command.read(options);
  const config = readConfig({ ...process.env, ...env });
  const found = await findService(config);
  await using service = await openService(found, config, command.makesStreams ?? false);
  const warn = (text: string) => {
    throw new Error(`bss ${known.name}: ${text}`);
  };
  return await action({ ...service, config, isJson: true, warn });
}

/** The same for a command that needs no process. */
export async function runHere(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<Output | Rejection> {
  const outcome = await tryHere(env, ...args);
  if (outcome === null) throw new Error(`bss ${args.join(' ')} needs a process of its own`);
  return outcome;
}
