/**
 * Port: where views are kept. Adapters: views.redis.ts, views.memory.ts.
 * `projection` is `idOf(…)`. Every method throws Unavailable('read-model') when the store does not
 * answer within its bound (1 s).
 */
export type Views = {
  /** Sequence up to which a projection has folded the log; 0: nothing yet, or all was lost. */
  checkpoint(projection: string): Promise<number>;

  /**
   * Writes a batch's views and moves the checkpoint from `after` to `upTo`, all or nothing, so that
   * several projectors may race. Returns the checkpoint that stands then:
   * - `upTo` or more: written, by this call or by a rival that was ahead;
   * - less than `after`: the store has lost what came before; nothing was written, fold again from
   *   there. A view that already stands at or beyond a write's sequence is left alone.
   */
  write(projection: string, batch: Batch): Promise<number>;

  /**
   * Whether what the store holds of a projection was folded from that log; where it holds nothing
   * of any, it is so from now on.
   */
  isOf(projection: string, logId: string): Promise<boolean>;
  /** Removes all of a projection: at once for its readers, and then what it took. */
  drop(projection: string): Promise<void>;

  /** A view's JSON text; null where there is none. */
  read(projection: string, key: string): Promise<string | null>;
  /** The same for many keys, in their order. */
  readMany(projection: string, keys: readonly string[]): Promise<(string | null)[]>;

  /**
   * A page of the views that stand in all of the lists, highest order first, with the checkpoint it
   * is of.
   */
  page(projection: string, query: PageQuery): Promise<Page>;
  /** How many views stand in each of the lists. */
  counts(projection: string, lists: readonly string[]): Promise<number[]>;
  /** A view's place in a list from its low end, from 0; null where it is not in it. */
  rank(projection: string, list: string, key: string): Promise<number | null>;

  /**
   * True once the checkpoint is at `sequence` or beyond; false when it was not within the bound.
   * Never throws.
   */
  reached(projection: string, sequence: number, timeoutMs: number): Promise<boolean>;

  /** False while the store does not answer. */
  isReachable(): boolean;
} & AsyncDisposable;

export type Batch = {
  after: number;
  upTo: number;
  writes: readonly ViewWrite[];
  /**
   * More writes of the same batch follow: the checkpoint stays where it is, and `after` is
   * returned. For who alone writes to the store: a rival could take the half for the whole.
   */
  isPart?: boolean;
};

export type ViewWrite = {
  key: string;
  /** Sequence of the event that made it. */
  sequence: number;
  /** JSON text; null removes the view. */
  view: string | null;
  lists: readonly string[];
  order: number;
};

/** `lists` holds at least one name. */
export type PageQuery = { lists: readonly string[]; offset: number; limit: number };

/** `items`: the page's views as JSON texts joined by commas, ready to stand between brackets. */
export type Page = { items: string; total: number; checkpoint: number };
