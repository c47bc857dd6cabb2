import { PackageMissing } from '#src/kernel/optional-package.ts';
import { findService, ServiceNotFoundError } from '#src/start/find-service.ts';
import { readConfig } from '#src/kernel/config/config.ts';
import { BadConfig } from '#src/kernel/config/parse.ts';
import { errors, isRejection, Unavailable, type Rejection } from '#src/kernel/errors.ts';
import type { Action, Arguments, Command, KnownCommand, Output } from './command.ts';
import { InterruptedError, UsageError } from './errors.ts';
import { print, printError, REFUSED } from './print.ts';

/**
 * Loads and runs a command, prints its result or the reason of its failure, and sets the exit code.
 * @throws UsageError
 */
export async function runCommand(
  known: KnownCommand,
  options: Arguments,
  isJson: boolean,
): Promise<void> {
  try {
    const command = await known.load();
    const alone = command.readAlone?.(options) ?? null;
    const result = await (alone === null
      ? runOnService(command, command.read(options), isJson)
      : alone());
    if (result !== null) present(result, isJson);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const { name, message } = explain(error);
    process.exitCode = REFUSED;
    printError(name, message, isJson);
  }
}

function present(result: Output | Rejection, isJson: boolean): void {
  if (!isRejection(result)) {
    if (result.differs === true) process.exitCode = REFUSED;
    return print(isJson ? JSON.stringify(result.json) : result.text);
  }
  const { code, message = errors[code].message } = result;
  process.exitCode = REFUSED;
  printError(code, message, isJson);
}

async function runOnService(
  { makesStreams = false }: Command,
  action: Action,
  isJson: boolean,
): Promise<Output | Rejection | null> {
  const config = readConfig(process.env);
  const found = await findService(config);
  // Imported once there is a service: its clients are most of what a call loads.
  const { openService } = await import('#src/start/cli.ts');
  await using service = await openService(found, config, makesStreams).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ServiceNotFoundError(`the service cannot be reached: ${reason}`, { cause: error });
  });
  return await action({ ...service, config, isJson, warn });

  function warn(text: string): void {
    process.exitCode = REFUSED;
    printError('INTERNAL', text, isJson);
  }
}

/** The error's code and message; an unexpected error is shown with its stack. */
function explain(error: unknown): { name: string; message: string } {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof BadConfig) return { name: 'INVALID_REQUEST', message };
  const isUnavailable = [ServiceNotFoundError, InterruptedError, PackageMissing, Unavailable].some(
    (type) => error instanceof type,
  );
  if (isUnavailable) return { name: 'UNAVAILABLE', message };
  return { name: 'INTERNAL', message: stack ?? message };
}
