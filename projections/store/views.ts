/**
 * Port: the store of projections' views. Adapters: redis/redis-views.ts, views.memory.ts.
 * `projection` is `projectionId(…)`. Every method throws Unavailable('read-model') if the store
 * does not answer within 1 s.
 */
export type Views = {
  /** The sequence up to which the views are folded; 0: none yet, or all views were lost. */
  checkpoint(projection: string): Promise<number>;

  /**
   * Writes a batch's views and moves the checkpoint from `after` to `upTo`, atomically, so that
   * several projectors may race. Returns the store's checkpoint:
   * - `upTo` or more: written, by this call or by another projector that was ahead;
   * - less than `after`: the store has lost data; nothing was written, fold again from there.
   * A stored view at or beyond a write's sequence is not changed.
   */
  write(projection: string, batch: Batch): Promise<number>;

  /**
   * Whether the projection's views were built from the event store with this id. If the store has
   * none yet, it records the id and returns true.
   */
  isBuiltFrom(projection: string, logId: string): Promise<boolean>;
  /** Removes all of a projection: at once for its readers, the memory afterwards. */
  drop(projection: string): Promise<void>;

  /** A view's JSON text; null: no such view. */
  read(projection: string, key: string): Promise<string | null>;
  /** The same with the checkpoint at which it was read. */
  readWithCheckpoint(projection: string, key: string): Promise<HeldView>;
  /** The views of many keys, in the order of the keys. */
  readMany(projection: string, keys: readonly string[]): Promise<(string | null)[]>;

  /**
   * A page of the views that are in all of the lists, highest order first, with the checkpoint at
   * which it was read.
   */
  page(projection: string, query: PageQuery): Promise<Page>;
  /** The number of views in each of the lists. */
  counts(projection: string, lists: readonly string[]): Promise<number[]>;
  /** A view's position in a list from its low end, from 0; null: not in the list. */
  rank(projection: string, list: string, key: string): Promise<number | null>;

  /**
   * Resolves true once the checkpoint is at `sequence` or beyond, false after `timeoutMs`. Never
   * rejects.
   */
  waitForCheckpoint(projection: string, sequence: number, timeoutMs: number): Promise<boolean>;

  /** False while the store does not answer. */
  isReachable(): boolean;
} & AsyncDisposable;

export type HeldView = { view: string | null; checkpoint: number };

export type Batch = {
  after: number;
  upTo: number;
  writes: readonly ViewWrite[];
  /**
   * More writes of the same batch follow: the checkpoint is not moved, and `after` is returned.
   * Only for the exclusive writer of a store: another one would take a part for the whole.
   */
  isPart?: boolean;
};

export type ViewWrite = {
  key: string;
  /** Sequence of the last event in the view. */
  sequence: number;
  /** JSON text; null removes the view. */
  view: string | null;
  lists: readonly string[];
  order: number;
};

/** `lists` holds at least one name. */
export type PageQuery = { lists: readonly string[]; offset: number; limit: number };

/** `items`: the page's views as JSON texts joined by commas: the inside of a JSON array. */
export type Page = { items: string; total: number; checkpoint: number };
