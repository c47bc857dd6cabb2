import { once } from 'node:events';
import { sleep } from '#src/async/sleep.ts';
import { BadConfig } from './config/parse.ts';
import { helpText, readConfig } from './config/config.ts';
import { start, type Started } from './bootstrap/start.ts';
import { createLogger } from './telemetry/logger.ts';

/** How long a start waits for readiness once all roles of this process run. */
const READY_WITHIN_MS = 60_000;
const POLL_MS = 20;
/** From a failed start to the end of the process. What hangs is cleaned up by the next start. */
const END_WITHIN_MS = 9_500;

if (process.argv.includes('--help')) process.stdout.write(helpText());
else await main();

async function main(): Promise<void> {
  let endWithinMs = END_WITHIN_MS;
  const ending = endingBySignal(() => endWithinMs);
  try {
    const config = readConfig(process.env);
    endWithinMs = config.shutdownWithinMs;
    const log = createLogger(config.logLevel);
    await using service = await start(config, log, print, ending);
    // The first browser may take long; a signal ends the wait for it.
    if (await Promise.race([isReady(service, ending), aborted(ending)])) {
      log.info({ url: service.apiUrl }, 'ready');
      if (service.welcome !== null) print(service.welcome);
    } else if (!ending.aborted) log.error({ waitingFor: service.missing() }, 'service not ready');
    await aborted(ending);
    log.info({ signal: String(ending.reason) }, 'shutting down');
  } catch (error) {
    if (error === ending.reason) return;
    process.stderr.write(`${explain(error)}\n`);
    process.exitCode = 1;
    endWithin(END_WITHIN_MS);
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

/** Aborts with the signal's name at SIGTERM, SIGINT and SIGHUP. */
function endingBySignal(withinMs: () => number): AbortSignal {
  const ending = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
    // `on`, not `once`: Ctrl-C arrives from the terminal, from npm and from the launcher.
    process.on(signal, () => {
      endWithin(withinMs());
      ending.abort(signal);
    });
  return ending.signal;
}

/** Ends the process in time, even if open handles would keep it alive. */
function endWithin(ms: number): void {
  setTimeout(() => process.exit(1), ms).unref();
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
