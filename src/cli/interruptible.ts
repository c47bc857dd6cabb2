import { NoService } from './errors.ts';

/** Work that Ctrl-C breaks off, and that cleans up after itself then. */
export async function breakable<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const onSignal = () => stop.abort(new NoService('broken off'));
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  try {
    return await work(stop.signal);
  } finally {
    process.removeListener('SIGINT', onSignal);
    process.removeListener('SIGTERM', onSignal);
  }
}
