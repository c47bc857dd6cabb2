/** The command line client: finds the running service, runs one command, prints the result. */
import { openService } from '#src/bootstrap/cli.ts';
import { findService, ServiceNotFoundError } from '#src/bootstrap/find-service.ts';
import { readConfig } from '#src/config/config.ts';
import { BadConfig } from '#src/config/parse.ts';
import { errors, isRejection, Unavailable, type Rejection } from '#src/errors.ts';
import { readArguments } from './arguments.ts';
import type { Action, Command, Output } from './command.ts';
import { runArchiveCommand } from './commands/archive/run.ts';
import { showArchive } from './commands/archive/status.ts';
import { verifyArchiveCommand } from './commands/archive/verify.ts';
import { exportAudit } from './commands/audit/export.ts';
import { showAuditKey } from './commands/audit/key.ts';
import { auditLedger } from './commands/audit/ledger.ts';
import { verifyAudit } from './commands/audit/verify.ts';
import { backupCommand, restoreCommand } from './commands/backup.ts';
import { showStatement } from './commands/credits-statement.ts';
import { grantCredits, showCredits } from './commands/credits.ts';
import { runDoctor } from './commands/doctor.ts';
import { buildImageCommand, showImages } from './commands/image.ts';
import { showEvent, tailEvents } from './commands/events.ts';
import { issueKey, listKeys, revokeKey } from './commands/keys.ts';
import { createOrganization, listOrganizations } from './commands/organizations.ts';
import { exportSession } from './commands/life/export.ts';
import { replay } from './commands/life/replay.ts';
import { listParked, retryParkedCommand, showParked, skipParked } from './commands/parked.ts';
import { simulatePoolCommand } from './commands/pool/simulate.ts';
import { listProjections, rebuildProjections, verifyProjections } from './commands/projections.ts';
import { drainServer, listServers, showServerHistory, undrainServer } from './commands/servers.ts';
import { showSessionAt } from './commands/session-at.ts';
import { showHistory } from './commands/session-history.ts';
import { queryEvents } from './commands/sql.ts';
import { showWhy } from './commands/why/why.ts';
import { InterruptedError, UsageError } from './errors.ts';
import { helpOn, helpOnAll } from './help.ts';

const commands: readonly Command[] = [
  createOrganization,
  listOrganizations,
  issueKey,
  listKeys,
  revokeKey,
  grantCredits,
  showCredits,
  showStatement,
  auditLedger,
  exportAudit,
  verifyAudit,
  showAuditKey,
  showArchive,
  verifyArchiveCommand,
  runArchiveCommand,
  showHistory,
  listServers,
  drainServer,
  undrainServer,
  showServerHistory,
  simulatePoolCommand,
  showSessionAt,
  exportSession,
  replay,
  showWhy,
  tailEvents,
  showEvent,
  queryEvents,
  listProjections,
  rebuildProjections,
  verifyProjections,
  listParked,
  showParked,
  retryParkedCommand,
  skipParked,
  runDoctor,
  showImages,
  buildImageCommand,
  backupCommand,
  restoreCommand,
];

/** Exit codes. */
const DONE = 0;
const REFUSED = 1;
const NOT_UNDERSTOOD = 2;

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  // A reader that closes the pipe early (`| head`) is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const isJson = args.includes('--json');
  process.exitCode = DONE;
  try {
    await dispatch(args, isJson);
  } catch (error) {
    const { name, message, exitCode } = explain(error);
    process.exitCode = exitCode;
    printError(name, message, isJson);
  }
}

async function dispatch(args: readonly string[], isJson: boolean): Promise<void> {
  const command = commands.find(({ name }) =>
    name.split(' ').every((word, at) => word === args[at]),
  );
  const isHelp = args.includes('--help') || args.includes('-h');
  if (command === undefined) {
    const group = commands.filter(({ name }) => name.startsWith(`${args[0]} `));
    if (!isHelp) throw new UsageError(whatIsWrong(args, group));
    return print(helpOnAll(group.length === 0 ? commands : group));
  }
  const options = readArguments(command, args.slice(command.name.split(' ').length));
  if (options.has('help')) return print(helpOn(command));
  const alone = command.readAlone?.(options) ?? null;
  const result = await (alone === null ? run(command, command.read(options), isJson) : alone());
  if (result === null) return;
  if (!isRejection(result)) {
    if (result.differs === true) process.exitCode = REFUSED;
    return print(isJson ? JSON.stringify(result.json) : result.text);
  }
  const { code, message = errors[code].message } = result;
  process.exitCode = REFUSED;
  printError(code, message, isJson);
}

function whatIsWrong([first, second]: readonly string[], group: readonly Command[]): string {
  const hint = 'bss --help lists the commands';
  if (first === undefined) return `a command is missing; ${hint}`;
  if (group.length === 0) return `unknown command ${first}; ${hint}`;
  const words = group.map(({ name }) => name.split(' ')[1]).join(', ');
  return `after ${first} comes one of ${words}, not ${second ?? 'nothing'}`;
}

async function run(
  { makesStreams = false }: Command,
  action: Action,
  isJson: boolean,
): Promise<Output | Rejection | null> {
  const config = readConfig(process.env);
  const found = await findService(config);
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

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function printError(error: string, message: string, isJson: boolean): void {
  // An API key may have been typed in the wrong place, and stderr often ends up in log files.
  const safe = message.replaceAll(/\bbss_[A-Za-z0-9_-]+/g, 'bss_…').trimEnd();
  const line = isJson ? JSON.stringify({ error, message: safe }) : `bss: ${safe}`;
  process.stderr.write(`${line}\n`);
}

/** The error's code, message and exit code; an unexpected error is shown with its stack. */
function explain(error: unknown): { name: string; message: string; exitCode: number } {
  if (error instanceof UsageError)
    return { name: 'INVALID_REQUEST', message: error.message, exitCode: NOT_UNDERSTOOD };
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof BadConfig) return { name: 'INVALID_REQUEST', message, exitCode: REFUSED };
  const isUnavailable = [ServiceNotFoundError, InterruptedError, Unavailable].some(
    (type) => error instanceof type,
  );
  if (isUnavailable) return { name: 'UNAVAILABLE', message, exitCode: REFUSED };
  return { name: 'INTERNAL', message: stack ?? message, exitCode: REFUSED };
}
