import { InterruptedError } from './errors.ts';

/** Runs work whose signal Ctrl-C and SIGTERM abort, so that the work can clean up after itself. */
export async function interruptible<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const onSignal = () => stop.abort(new InterruptedError('interrupted'));
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  try {
    return await work(stop.signal);
  } finally {
    process.removeListener('SIGINT', onSignal);
    process.removeListener('SIGTERM', onSignal);
  }
}
