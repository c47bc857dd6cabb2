import { filterOf } from '#events/subjects.ts';
import type { ParkedEvents, ParkedRef } from '#src/messaging/dead-letters.ts';
import { asWritten, foldEvent, type FoldedView } from '../fold-event.ts';
import type { ProjectedLog } from '../runner/run-projection.ts';
import { idOf, type Projection } from '../projection.ts';
import { readLog } from './read-log.ts';
import type { Upkeep } from '../store/maintenance.ts';
import type { Views, ViewWrite } from '../store/views.ts';

export type RetryOptions<View> = {
  projection: Projection<View>;
  event: ParkedRef & { subject: string };
  log: ProjectedLog;
  views: Views & Upkeep;
  parked: ParkedEvents;
  signal: AbortSignal;
};

/** `fails`: why it still cannot be read or folded. */
export type Retried = { outcome: 'mended' } | { outcome: 'fails'; reason: string };

/** The view of a busy key is folded again that often before it is given up. */
const TRIES = 20;

/**
 * Folds the view that a parked event concerns again, from its aggregate's whole history, and writes
 * it where the event could be folded this time; the event is then parked no more.
 * @throws Unavailable
 */
export async function retryParked<View>(options: RetryOptions<View>): Promise<Retried> {
  const { projection, event, parked } = options;
  const found = await keyOf(options);
  if ('fails' in found) return { outcome: 'fails', reason: found.fails };
  const { key } = found;
  if (key !== null && !(await mend(options, key))) {
    const reason = (await foldUpTo(options, key, event.sequence)).failure;
    return { outcome: 'fails', reason: reason ?? 'its view changes too fast; try again' };
  }
  await parked.forget({ by: idOf(projection), sequence: event.sequence });
  return { outcome: 'mended' };
}

async function mend<View>(options: RetryOptions<View>, key: string): Promise<boolean> {
  const { projection, event, views } = options;
  const id = idOf(projection);
  for (let left = TRIES; left > 0; left -= 1) {
    const at = await views.checkpoint(id);
    const { folded, failure } = await foldUpTo(options, key, at);
    if (failure !== null) return false;
    const write: ViewWrite =
      folded === null
        ? { key, sequence: event.sequence, view: null, lists: [], order: 0 }
        : { key, ...asWritten(folded) };
    if (await views.mend(id, at, [write])) return true;
  }
  return false;
}

/** The key of the view it concerns; null: of none. */
async function keyOf<View>({
  projection,
  event,
  log,
  signal,
}: RetryOptions<View>): Promise<{ key: string | null } | { fails: string }> {
  for await (const batch of readLog(log, [event.subject], event.sequence, signal)) {
    const found = batch.find(({ sequence }) => sequence === event.sequence);
    if (found === undefined) continue;
    try {
      return { key: projection.key(found) };
    } catch (error) {
      return { fails: String(error) };
    }
  }
  return { fails: 'it cannot be read' };
}

/** `failure`: why the event in question was passed over again. */
async function foldUpTo<View>(
  { projection, event, log, signal }: RetryOptions<View>,
  key: string,
  upTo: number,
): Promise<{ folded: FoldedView<View> | null; failure: string | null }> {
  let folded = null as FoldedView<View> | null;
  let failure = null as string | null;
  const subjects = [filterOf(projection.aggregateOf(key))];
  for await (const batch of readLog(log, subjects, upTo, signal))
    for (const one of batch) {
      try {
        if (projection.key(one) === key) folded = foldEvent(projection, folded?.view ?? null, one);
      } catch (error) {
        // Another one that is passed over stays parked by itself.
        if (one.sequence === event.sequence)
          failure = error instanceof Error ? error.message : String(error);
      }
    }
  return { folded, failure };
}
