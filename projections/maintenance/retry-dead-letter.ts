import { streamFilter } from '#events/subjects.ts';
import type { DeadLetterStore, DeadLetterRef } from '#src/kernel/messaging/dead-letters.ts';
import { createStateReader } from '#src/kernel/event-store/load-state.ts';
import { refuseUnknown } from '#src/kernel/event-store/unreadable.ts';
import { completed, toWrite, foldEvent, type FoldedView } from '../runner/fold.ts';
import type { ProjectionSource } from '../runner/projector.ts';
import { projectionId, type Projection } from '../projection.ts';
import type { StoreMaintenance } from '../store/maintenance.ts';
import type { Views, ViewWrite } from '../store/views.ts';

export type RetryOptions<View> = {
  projection: Projection<View>;
  event: DeadLetterRef & { subject: string };
  eventStore: ProjectionSource;
  views: Views & StoreMaintenance;
  deadLetters: DeadLetterStore;
  signal: AbortSignal;
};

/** `reason`: why the event still cannot be read or folded. */
export type RetryResult = { outcome: 'mended' } | { outcome: 'fails'; reason: string };

/** Attempts to write a view that changes while it is folded. */
const TRIES = 20;

/**
 * Folds the view of a dead-lettered event again, from all events of its aggregate. If the event can
 * be folded now, the view is overwritten and the dead letter is resolved.
 * @throws Unavailable
 */
export async function retryDeadLetter<View>(options: RetryOptions<View>): Promise<RetryResult> {
  const { projection, event, deadLetters } = options;
  const found = await keyOf(options);
  if ('fails' in found) return { outcome: 'fails', reason: found.fails };
  const { key } = found;
  if (key !== null && !(await refoldView(options, key))) {
    const reason = (await foldUpTo(options, key, event.sequence)).failure;
    return { outcome: 'fails', reason: reason ?? 'its view changes too fast; try again' };
  }
  await deadLetters.resolve({ by: projectionId(projection), sequence: event.sequence });
  return { outcome: 'mended' };
}

async function refoldView<View>(options: RetryOptions<View>, key: string): Promise<boolean> {
  const { projection, event, views } = options;
  const id = projectionId(projection);
  for (let left = TRIES; left > 0; left -= 1) {
    const at = await views.checkpoint(id);
    const { folded, failure } = await foldUpTo(options, key, at);
    if (failure !== null) return false;
    const write: ViewWrite =
      folded === null
        ? { key, sequence: event.sequence, view: null, lists: [], order: 0 }
        : { key, ...toWrite(folded) };
    if (await views.overwrite(id, at, [write])) return true;
  }
  return false;
}

/** The key of the event's view; null: the event changes no view. */
async function keyOf<View>({
  projection,
  event,
  eventStore,
  signal,
}: RetryOptions<View>): Promise<{ key: string | null } | { fails: string }> {
  const { sequence, subject } = event;
  const place = { after: sequence - 1, upTo: sequence };
  const range = { subjects: [subject], ...place, signal, onUnreadable: refuseUnknown };
  for await (const [found] of eventStore.read(range)) {
    if (found === undefined) continue;
    try {
      return { key: projection.key(found) };
    } catch (error) {
      return { fails: String(error) };
    }
  }
  signal.throwIfAborted();
  return { fails: 'it cannot be read' };
}

/** `failure`: why the dead-lettered event cannot be folded; null: it can. */
async function foldUpTo<View>(
  { projection, event, eventStore, signal }: RetryOptions<View>,
  key: string,
  upTo: number,
): Promise<{ folded: FoldedView<View> | null; failure: string | null }> {
  let folded = null as FoldedView<View> | null;
  let failure = null as string | null;
  const subjects = [streamFilter(projection.aggregateOf(key))];
  const range = { subjects, upTo, signal, onUnreadable: refuseUnknown };
  const states = createStateReader(eventStore);
  for await (const batch of eventStore.read(range))
    for (const stored of batch) {
      const one = await completed(states, stored);
      try {
        if (projection.key(one) === key) folded = foldEvent(projection, one);
      } catch (error) {
        // Any other event that fails keeps its own dead letter.
        if (one.sequence === event.sequence)
          failure = error instanceof Error ? error.message : String(error);
      }
    }
  signal.throwIfAborted();
  return { folded, failure };
}
