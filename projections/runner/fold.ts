import type { RecordedEvent } from '#events/events.ts';
import { asWritten, foldEvent, type FoldedView } from '../fold-event.ts';
import type { Projection } from '../projection.ts';
import type { Views, ViewWrite } from '../store/views.ts';

/** Folds batches of events into writes; holds the views it has folded while they are of use. */
export type Folder = {
  /**
   * The batch's views as they stand after its last event, one write a view. `after` is the
   * checkpoint that the batch continues. Where the store stands elsewhere nothing is folded, and
   * its checkpoint is told: views that it already holds further on must not be folded twice.
   * @throws Unavailable('read-model') where views have to be read.
   */
  fold(after: number, events: readonly RecordedEvent[]): Promise<Folded>;
  /** The last batch is written: its views are those that the store holds. */
  keep(): void;
  /** The store has gone its own way: what is held here may not be what it holds. */
  forget(): void;
};

export type Folded = { writes: ViewWrite[] } | { standsAt: number };

/** Views held; some kilobytes each. Beyond it the least recently folded is read again. */
const HELD_MAX = 10_000;

export function createFolder<View>(
  projection: Projection<View>,
  store: string,
  views: Pick<Views, 'readMany' | 'checkpoint'>,
  onPoison: (event: RecordedEvent, reason: string) => void,
): Folder {
  const held = new Map<string, View | null>();
  let results = new Map<string, FoldedView<View>>();

  /** Reads the views that the events concern; the store's checkpoint where it is not `after`. */
  async function hold(after: number, events: readonly RecordedEvent[]): Promise<number | null> {
    const keys = new Set(
      events.map((event) => keyOf(projection, event)).filter((key) => key !== null),
    );
    const missing = [...keys].filter((key) => !held.has(key));
    if (missing.length === 0) return null;
    const texts = await views.readMany(store, missing);
    // Asked after the reads: if it still stands at `after`, so did they.
    const standsAt = await views.checkpoint(store);
    if (standsAt !== after) return standsAt;
    for (const [index, key] of missing.entries()) {
      const text = texts[index] ?? null;
      held.set(key, text === null ? null : (JSON.parse(text) as View));
    }
    return null;
  }

  function foldOne(event: RecordedEvent): void {
    const key = projection.key(event);
    if (key === null) return;
    const before = results.get(key)?.view ?? held.get(key) ?? null;
    results.set(key, foldEvent(projection, before, event));
  }

  return {
    async fold(after, events) {
      results = new Map();
      const standsAt = projection.readsView ? await hold(after, events) : null;
      if (standsAt !== null) return { standsAt };
      for (const event of events) {
        try {
          foldOne(event);
        } catch (error) {
          onPoison(event, error instanceof Error ? error.message : String(error));
        }
      }
      return { writes: [...results].map(writeOf) };
    },
    keep() {
      if (!projection.readsView) return;
      for (const [key, { view }] of results) {
        held.delete(key);
        held.set(key, view);
      }
      for (const key of held.keys()) {
        if (held.size <= HELD_MAX) break;
        held.delete(key);
      }
    },
    forget() {
      held.clear();
    },
  };
}

function writeOf<View>([key, folded]: [string, FoldedView<View>]): ViewWrite {
  return { key, ...asWritten(folded) };
}

/** null: the event concerns no view, or cannot be keyed, which its fold will report. */
export function keyOf<View>(projection: Projection<View>, event: RecordedEvent): string | null {
  try {
    return projection.key(event);
  } catch {
    return null;
  }
}
