/** The command line client: finds the running service, does one command, prints the result. */
import { openService } from '#src/bootstrap/cli.ts';
import { BadConfig } from '#src/config/parse.ts';
import { readConfig } from '#src/config/config.ts';
import { errors, isRejected, Unavailable, type Rejected } from '#src/errors.ts';
import { exportAudit } from './commands/audit/export.ts';
import { auditLedger } from './commands/audit/ledger.ts';
import { showAuditKey } from './audit-show-key.ts';
import { verifyAudit } from './commands/audit/verify.ts';
import { backUpLog, restoreLog } from './commands/backup.ts';
import type { Action, Command, Output } from './command.ts';
import { grantCredits } from './credits-grant.ts';
import { showCredits } from './credits-show.ts';
import { statementOfCredits } from './commands/credits-statement.ts';
import { examine } from './commands/doctor.ts';
import { showEvent } from './events-show.ts';
import { tailEvents } from './commands/events.ts';
import { Misuse, NoService } from './errors.ts';
import { findService } from '#src/bootstrap/find-service.ts';
import { readGiven } from './arguments.ts';
import { helpOn, helpOnAll } from './help.ts';
import { issueKey } from './commands/keys.ts';
import { listKeys } from './keys-list.ts';
import { revokeKey } from './keys-revoke.ts';
import { createOrganization } from './orgs-create.ts';
import { listOrganizations } from './commands/organizations.ts';
import { listParked } from './commands/parked.ts';
import { retryParkedEvents } from './parked-retry.ts';
import { showParked } from './parked-show.ts';
import { skipParked } from './parked-skip.ts';
import { listProjections } from './projections-list.ts';
import { rebuildProjections } from './projections-rebuild.ts';
import { verifyProjections } from './commands/projections.ts';
import { showSessionAt } from './session-at.ts';
import { drainServer, undrainServer } from './servers-drain.ts';
import { showServerHistory } from './commands/servers.ts';
import { listServers } from './servers-list.ts';
import { showHistory } from './commands/session-history.ts';
import { showWhy } from './commands/why/why.ts';

const commands: readonly Command[] = [
  createOrganization,
  listOrganizations,
  issueKey,
  listKeys,
  revokeKey,
  grantCredits,
  showCredits,
  statementOfCredits,
  auditLedger,
  exportAudit,
  verifyAudit,
  showAuditKey,
  showHistory,
  listServers,
  drainServer,
  undrainServer,
  showServerHistory,
  showSessionAt,
  showWhy,
  tailEvents,
  showEvent,
  listProjections,
  rebuildProjections,
  verifyProjections,
  listParked,
  showParked,
  retryParkedEvents,
  skipParked,
  examine,
  backUpLog,
  restoreLog,
];

/** Codes by which a script tells what became of the command. */
const DONE = 0;
const REFUSED = 1;
const NOT_UNDERSTOOD = 2;

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  // A reader that has seen enough (`| head`) is no error.
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
    complain(name, message, isJson);
  }
}

async function dispatch(args: readonly string[], isJson: boolean): Promise<void> {
  const command = commands.find(({ name }) =>
    name.split(' ').every((word, at) => word === args[at]),
  );
  const isHelp = args.includes('--help') || args.includes('-h');
  if (command === undefined) {
    const group = commands.filter(({ name }) => name.startsWith(`${args[0]} `));
    if (!isHelp) throw new Misuse(whatIsWrong(args, group));
    return print(helpOnAll(group.length === 0 ? commands : group));
  }
  const given = readGiven(command, args.slice(command.name.split(' ').length));
  if (given.has('help')) return print(helpOn(command));
  const alone = command.readAlone?.(given) ?? null;
  const result = await (alone === null ? run(command, command.read(given), isJson) : alone());
  if (result === null) return;
  if (!isRejected(result)) {
    if (result.differs === true) process.exitCode = REFUSED;
    return print(isJson ? JSON.stringify(result.json) : result.text);
  }
  const { rejected, message = errors[rejected].message } = result;
  process.exitCode = REFUSED;
  complain(rejected, message, isJson);
}

function whatIsWrong([first, second]: readonly string[], group: readonly Command[]): string {
  const hint = 'bss --help lists the commands';
  if (first === undefined) return `a command is missing; ${hint}`;
  if (group.length === 0) return `there is no command ${first}; ${hint}`;
  const words = group.map(({ name }) => name.split(' ')[1]).join(', ');
  return `after ${first} comes one of ${words}, not ${second ?? 'nothing'}`;
}

async function run(
  { makesLog = false }: Command,
  action: Action,
  isJson: boolean,
): Promise<Output | Rejected | null> {
  const config = readConfig(process.env);
  const found = await findService(config);
  await using service = await openService(found, config, makesLog).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NoService(`the service cannot be reached: ${reason}`, { cause: error });
  });
  return await action({ ...service, config, isJson, warn });

  function warn(text: string): void {
    process.exitCode = REFUSED;
    complain('INTERNAL', text, isJson);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function complain(error: string, message: string, isJson: boolean): void {
  // What was typed in the wrong place may be a key, and stderr ends in other people's logs.
  const safe = message.replaceAll(/\bbss_[A-Za-z0-9_-]+/g, 'bss_…').trimEnd();
  const line = isJson ? JSON.stringify({ error, message: safe }) : `bss: ${safe}`;
  process.stderr.write(`${line}\n`);
}

/** What the operator is told; of a bug, its stack. */
function explain(error: unknown): { name: string; message: string; exitCode: number } {
  if (error instanceof Misuse)
    return { name: 'INVALID_REQUEST', message: error.message, exitCode: NOT_UNDERSTOOD };
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof BadConfig) return { name: 'INVALID_REQUEST', message, exitCode: REFUSED };
  if (error instanceof NoService || error instanceof Unavailable)
    return { name: 'UNAVAILABLE', message, exitCode: REFUSED };
  return { name: 'INTERNAL', message: stack ?? message, exitCode: REFUSED };
}
