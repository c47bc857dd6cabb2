import { openService } from '#src/bootstrap/cli.ts';
import { findService } from '#src/bootstrap/find-service.ts';
import type { Output } from '#src/cli/command.ts';
import { readArguments } from '#src/cli/read-arguments.ts';
import { allCommands } from '#src/cli/usage/all.ts';
import { readConfig } from '#src/config/config.ts';
import { isRejection, type Rejection } from '#src/errors.ts';

/**
 * Runs a command of `bss` in this process: a process of its own takes a second of processor time.
 * What a command prints, and its exit codes, are for tests that start one.
 * @throws UsageError, or what keeps it from the service
 */
export async function runHere(
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<Output | Rejection> {
  const known = allCommands.find(({ name }) =>
    name.split(' ').every((word, at) => word === args[at]),
  );
  if (known === undefined) throw new Error(`no command ${args.join(' ')}`);
  const options = readArguments(known, args.slice(known.name.split(' ').length));
  const command = await known.load();
  const alone = command.readAlone?.(options) ?? null;
  const outcome = alone === null ? await onService() : await alone();
  if (outcome === null) throw new Error(`bss ${known.name} prints as it goes: start a process`);
  return outcome;

  async function onService() {
    const action = command.read(options);
    const config = readConfig({ ...process.env, ...env });
    const found = await findService(config);
    await using service = await openService(found, config, command.makesStreams ?? false);
    const warn = (text: string) => {
      throw new Error(`bss ${known?.name}: ${text}`);
    };
    return await action({ ...service, config, isJson: true, warn });
  }
}

/** The JSON of a command that succeeds. @throws Error if its exit code would not be 0 */
export async function json(
  { dataDir }: { dataDir: string },
  ...args: readonly string[]
): Promise<unknown> {
  const outcome = await runHere({ DATA_DIR: dataDir }, ...args);
  const isDone = !isRejection(outcome) && outcome.differs !== true;
  if (!isDone) throw new Error(`bss ${args.join(' ')}: ${JSON.stringify(outcome)}`);
  // What a program would read: no undefined, dates as text.
  return JSON.parse(JSON.stringify(outcome.json)) as unknown;
}
