/**
 * The service's process. It handles its signals before it loads the program, which takes seconds:
 * the first process of a container never gets a signal that it does not handle.
 */

/** From a signal, or a failed start, to the end. What hangs is cleaned up by the next start. */
const END_WITHIN_MS = 9_500;
let shutdownWithinMs = END_WITHIN_MS;

const ending = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
  // `on`, not `once`: Ctrl-C arrives from the terminal, from npm and from the launcher.
  process.on(signal, () => {
    endWithin(shutdownWithinMs);
    ending.abort(signal);
  });

const { runService } = await import('#src/start/run-service.ts');
if (!(await runService(ending.signal, (ms) => (shutdownWithinMs = ms)))) {
  process.exitCode = 1;
  endWithin(END_WITHIN_MS);
}

/** Ends the process in time, even if open handles would keep it alive. */
function endWithin(ms: number): void {
  setTimeout(() => process.exit(1), ms).unref();
}
