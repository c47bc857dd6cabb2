import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sleep } from '#src/kernel/async/sleep.ts';
import { BadConfig } from '#src/kernel/config/parse.ts';
import { helpText, readConfig } from '#src/kernel/config/config.ts';
import { start, type Started } from './start.ts';
import { createLogger } from '#src/kernel/telemetry/logger.ts';

/** How long a start waits for readiness once all roles of this process run. */
const READY_WITHIN_MS = 60_000;
const POLL_MS = 20;

/**
 * Runs the roles of this process until `ending` aborts, or prints the variables (`--help`).
 * @param ending with the name of the signal as its reason
 * @param endsWithin is called with the milliseconds that a shutdown may take, once the
 * configuration has been read
 * @returns false: it has failed, and told why on stderr
 */
export async function runService(
  ending: AbortSignal,
  endsWithin: (ms: number) => void,
): Promise<boolean> {
  if (process.argv.includes('--help')) {
    process.stdout.write(helpText());
    return true;
  }
  try {
    const config = readConfig(process.env);
    endsWithin(config.shutdownWithinMs);
    const log = createLogger(config.logLevel);
    await using service = await start(config, log, print, ending);
    // The first browser may take long; a signal ends the wait for it.
    if (await Promise.race([isReady(service, ending), aborted(ending)])) {
      log.info({ url: service.apiUrl }, 'ready');
      if (service.welcome !== null) print(service.welcome);
      releaseStartMemory();
    } else if (!ending.aborted) log.error({ waitingFor: service.missing() }, 'service not ready');
    await aborted(ending);
    log.info({ signal: String(ending.reason) }, 'shutting down');
    return true;
  } catch (error) {
    if (error === ending.reason) return true;
    process.stderr.write(`${explain(error)}\n`);
    return false;
  }
}

/**
 * True once /api/ready answers 200 and idle browsers are ready; false if the wait times out or the
 * process is ending.
 */
async function isReady(service: Started, ending: AbortSignal): Promise<boolean> {
  await service.warm();
  const deadline = performance.now() + READY_WITHIN_MS;
  while (service.missing().length > 0) {
    if (ending.aborted || performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/**
 * Gives back to the system what only the start needed: 10 to 13 MiB of a process of one role, 20 of
 * all roles, mostly of V8's young generation. It grows while modules load, and shrinks in a
 * collection that is to save memory, which a process with little to do has none of. That takes 0.1
 * to 0.15 s of processor time, once; under load the generation grows as it likes. A lower limit for
 * it, `--max-semi-space-size=4`, saved half as much, and has to be said wherever Node is started.
 */
function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

async function aborted(signal: AbortSignal): Promise<false> {
  if (!signal.aborted) await once(signal, 'abort');
  return false;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The message for the operator; an unexpected error is shown with its stack. */
function explain(error: unknown): string {
  if (error instanceof BadConfig) return `${error.message}\n(--help lists all variables)`;
  if (!(error instanceof Error)) return String(error);
  const isOurs = error.name !== 'Error' && error.name !== 'TypeError';
  return isOurs ? `${error.name}: ${error.message}` : (error.stack ?? error.message);
}
