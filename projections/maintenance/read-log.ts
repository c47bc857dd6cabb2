import type { RecordedEvent } from '#events/events.ts';
import { Unavailable } from '#src/errors.ts';
import type { ProjectedLog } from '../runner/run-projection.ts';

/** The log sends what it has within milliseconds; after so long without a word it is away. */
const SILENCE_MS = 10_000;

/**
 * What the log holds of the subjects up to `upTo`, in batches; events that cannot be read are left
 * out.
 * @throws Unavailable('event-log'); the signal's reason
 */
export async function* readLog(
  log: ProjectedLog,
  subjects: readonly string[],
  upTo: number,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent[], void, void> {
  const end = Math.min(upTo, await log.lastSequence(subjects));
  if (end === 0) return;
  const stop = new AbortController();
  let readTo = 0;
  const startTimer = () => setTimeout(() => stop.abort(), SILENCE_MS);
  let timer = startTimer();
  const batches = log.follow({
    subjects,
    after: 0,
    signal: AbortSignal.any([signal, stop.signal]),
    onMalformed({ sequence }) {
      readTo = Math.max(readTo, sequence);
      // Where it is the last one no batch will come any more.
      if (readTo >= end) setTimeout(() => stop.abort(), 0);
    },
  });
  try {
    for await (const batch of batches) {
      clearTimeout(timer);
      const last = batch.at(-1)?.sequence ?? 0;
      readTo = Math.max(readTo, last);
      yield last > end ? batch.filter(({ sequence }) => sequence <= end) : batch;
      if (readTo >= end) return;
      timer = startTimer();
    }
  } finally {
    clearTimeout(timer);
  }
  signal.throwIfAborted();
  if (readTo < end) throw new Unavailable('event-log');
}
