import { MalformedEvent } from '#events/codec.ts';
import { hasState, type RecordedEvent } from '#events/events.ts';
import type { StateReader } from '#src/event-store/load-state.ts';
import type { Projection } from '../projection.ts';
import type { Views, ViewWrite } from '../store/views.ts';

/** A view after an event, with its lists (`names`) and its order in them. */
export type FoldedView<View> = {
  view: View | null;
  sequence: number;
  names: readonly string[];
  order: number;
};

/**
 * The view after one event. All folds use it: the projector, rebuild, verify and retry.
 * @throws Error if the event cannot be folded: it becomes a dead letter.
 */
export function foldEvent<View>(
  projection: Projection<View>,
  before: View | null,
  event: RecordedEvent,
): FoldedView<View> {
  const { view, place } = evolveView(projection, before, event);
  const { names, order } = place ?? { names: [], order: 0 };
  if (!Number.isFinite(order)) throw new RangeError(`no place in a list: ${order}`);
  return { view, sequence: event.sequence, names, order };
}

function evolveView<View>(projection: Projection<View>, before: View | null, event: RecordedEvent) {
  if (projection.readsView) {
    const view = projection.evolve(before, event);
    return { view, place: view === null ? undefined : projection.lists?.(view, event) };
  }
  if (!hasState(event))
    throw new Error('the state in the event has another version, and its history is malformed');
  const view = projection.evolve(null, event);
  return { view, place: view === null ? undefined : projection.lists?.(view, event) };
}

/**
 * The event with the state that its fold needs.
 * @throws WrittenByNewer if its history cannot be read
 * here yet
 */
export async function completed(states: StateReader, event: RecordedEvent): Promise<RecordedEvent> {
  try {
    return await states.complete(event);
  } catch (error) {
    // A malformed history: the fold fails, and the event becomes a dead letter.
    if (error instanceof MalformedEvent) return event;
    throw error;
  }
}

/** The write to the store, without its key. */
export function toWrite<View>(folded: FoldedView<View>): Omit<ViewWrite, 'key'> {
  const { view, sequence, names, order } = folded;
  return { sequence, view: view === null ? null : JSON.stringify(view), lists: names, order };
}

/** Folds batches of events into writes. Caches folded views for projections with `readsView`. */
export type Folder = {
  /**
   * One write for each view that the batch changes. `after` is the checkpoint that the batch
   * continues. If the store is at another checkpoint, nothing is folded and that checkpoint is
   * returned: its views may contain these events already.
   * @throws Unavailable('read-model') if views have to be read and the store does not answer.
   */
  fold(after: number, events: readonly RecordedEvent[]): Promise<Folded>;
  /** The last batch was written: its views may be cached. */
  commit(): void;
  /** The store was changed by another writer: drops the cached views. */
  clear(): void;
};

export type Folded = { writes: ViewWrite[] } | { storeCheckpoint: number };

/** Cached views, some kilobytes each. Beyond it the least recently folded view is dropped. */
const CACHED_MAX = 10_000;

export function createFolder<View>(
  projection: Projection<View>,
  store: string,
  views: Pick<Views, 'readMany' | 'checkpoint'>,
  onFoldFailure: (event: RecordedEvent, reason: string) => void,
): Folder {
  const cache = new Map<string, View | null>();
  let results = new Map<string, FoldedView<View>>();

  /** Loads the events' views into the cache; returns the store's checkpoint if not `after`. */
  async function load(after: number, events: readonly RecordedEvent[]): Promise<number | null> {
    const keys = new Set(
      events.map((event) => keyOf(projection, event)).filter((key) => key !== null),
    );
    const missing = [...keys].filter((key) => !cache.has(key));
    if (missing.length === 0) return null;
    const texts = await views.readMany(store, missing);
    // Read after the views: if the checkpoint is still `after`, the views are of that checkpoint.
    const storeCheckpoint = await views.checkpoint(store);
    if (storeCheckpoint !== after) return storeCheckpoint;
    for (const [index, key] of missing.entries()) {
      const text = texts[index] ?? null;
      cache.set(key, text === null ? null : (JSON.parse(text) as View));
    }
    return null;
  }

  function foldOne(event: RecordedEvent): void {
    const key = projection.key(event);
    if (key === null) return;
    const before = results.get(key)?.view ?? cache.get(key) ?? null;
    results.set(key, foldEvent(projection, before, event));
  }

  return {
    async fold(after, events) {
      results = new Map();
      const storeCheckpoint = projection.readsView ? await load(after, events) : null;
      if (storeCheckpoint !== null) return { storeCheckpoint };
      for (const event of events) {
        try {
          foldOne(event);
        } catch (error) {
          onFoldFailure(event, error instanceof Error ? error.message : String(error));
        }
      }
      return { writes: [...results].map(writeOf) };
    },
    commit() {
      if (!projection.readsView) return;
      for (const [key, { view }] of results) {
        cache.delete(key);
        cache.set(key, view);
      }
      for (const key of cache.keys()) {
        if (cache.size <= CACHED_MAX) break;
        cache.delete(key);
      }
    },
    clear() {
      cache.clear();
    },
  };
}

function writeOf<View>([key, folded]: [string, FoldedView<View>]): ViewWrite {
  return { key, ...toWrite(folded) };
}

/** null: the event changes no view, or its key cannot be computed, which its fold will report. */
export function keyOf<View>(projection: Projection<View>, event: RecordedEvent): string | null {
  try {
    return projection.key(event);
  } catch {
    return null;
  }
}
