import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { BadConfig } from './config/parse.ts';
import { helpText, readConfig } from './config/config.ts';
import { start, type Started } from './bootstrap/start.ts';
import { createLog } from './telemetry/logger.ts';

/** How long the parts that a start waits for are waited for once all of this process runs. */
const READY_WITHIN_MS = 60_000;
const POLL_MS = 20;
/**
 * From the signal, or a start that failed, to the end of the process; what hangs then is left to
 * the next start.
 */
const END_WITHIN_MS = 9_500;

if (process.argv.includes('--help')) process.stdout.write(helpText());
else await main();

async function main(): Promise<void> {
  const ending = endingBySignal();
  try {
    const config = readConfig(process.env);
    const log = createLog(config.logLevel);
    await using service = await start(config, log, say, ending);
    // A first browser may take long; who asks for the end meanwhile does not wait for it.
    if (await Promise.race([isReady(service, ending), aborted(ending)])) {
      log.info({ url: service.apiUrl }, 'ready');
      if (service.welcome !== null) say(service.welcome);
    } else if (!ending.aborted) log.error({ waitingFor: service.missing() }, 'not ready');
    await aborted(ending);
    log.info({ signal: String(ending.reason) }, 'ending');
  } catch (error) {
    if (error === ending.reason) return;
    process.stderr.write(`${explain(error)}\n`);
    process.exitCode = 1;
    endInTime();
  }
}

/**
 * True once /api/ready answers 200 and the browsers of this process wait; false where it does not
 * come to that.
 */
async function isReady(service: Started, ending: AbortSignal): Promise<boolean> {
  await service.warm();
  const deadline = performance.now() + READY_WITHIN_MS;
  while (service.missing().length > 0) {
    if (ending.aborted || performance.now() > deadline) return false;
    await pause(POLL_MS);
  }
  return true;
}

/** Aborts, with the signal's name, when the process is asked to end. */
function endingBySignal(): AbortSignal {
  const ending = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
    // Again and again: Ctrl-C comes from the terminal, from npm and from the launcher.
    process.on(signal, () => {
      endInTime();
      ending.abort(signal);
    });
  return ending.signal;
}

/** Ends the process in time, whatever it has left behind that would keep it. */
function endInTime(): void {
  setTimeout(() => process.exit(1), END_WITHIN_MS).unref();
}

async function aborted(signal: AbortSignal): Promise<false> {
  if (!signal.aborted) await once(signal, 'abort');
  return false;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** What an operator is told: what is wrong, and no stack where the message says it all. */
function explain(error: unknown): string {
  if (error instanceof BadConfig) return `${error.message}\n(--help lists all variables)`;
  if (!(error instanceof Error)) return String(error);
  const isOurs = error.name !== 'Error' && error.name !== 'TypeError';
  return isOurs ? `${error.name}: ${error.message}` : (error.stack ?? error.message);
}
