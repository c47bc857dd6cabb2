import type { ViewWrite } from './views.ts';

/**
 * Port: maintenance of the stores of projections' views; readers do not use it. Adapters: the same
 * as for Views. Every method throws Unavailable('read-model') like those of Views.
 */
export type StoreMaintenance = {
  /** All stores that were renewed or acquired, and those whose removal was interrupted. */
  stores(): Promise<StoreStatus[]>;
  /** Marks the store as in use for `forMs`. Any number of processes may. */
  renew(projection: string, forMs: number): Promise<void>;
  /**
   * Locks the store for one holder for `forMs`, or extends its lock (0: releases it). False:
   * another holder has it.
   */
  acquire(projection: string, holder: string, forMs: number): Promise<boolean>;

  /**
   * Replaces the projection's views by those of the store `by` in one step, and removes the old
   * ones. False, and nothing was changed: the checkpoint of `by` is lower than that of the views in
   * use, since readers never step back, or lower than `atLeast`, up to which the caller has written
   * it: `by` has lost data.
   */
  replace(projection: string, by: string, atLeast: number): Promise<boolean>;
  /**
   * Writes views that were folded up to the checkpoint `at`, whatever is stored under their keys.
   * False: the store is at another checkpoint, and nothing was written.
   */
  overwrite(projection: string, at: number, writes: readonly ViewWrite[]): Promise<boolean>;

  /**
   * Removes the views whose last event is at or before the sequence, with their entries in lists,
   * a hundred at a time. Returns how many. A view that is written meanwhile with a later event
   * stays. The checkpoint is not moved. Views of a store that is replaced meanwhile may be missed.
   */
  removeUpTo(projection: string, sequence: number): Promise<number>;

  /** The keys of all views, some hundreds at a time; views written meanwhile may be missed. */
  keys(projection: string): AsyncIterable<string[]>;
  /** At most `count` keys of random views. */
  sample(projection: string, count: number): Promise<string[]>;
  /** All that is stored under these keys (`keysMax` at most), and the store's checkpoint. */
  inspect(projection: string, keys: readonly string[]): Promise<InspectedViews>;
  /** Entries of lists whose view does not name the list. */
  orphans(projection: string): AsyncIterable<OrphanEntry[]>;
};

export type StoreStatus = {
  projection: string;
  checkpoint: number;
  views: number;
  /** Whether a process has renewed or acquired it and that time is not over. */
  isInUse: boolean;
};

export type InspectedViews = { checkpoint: number; views: (StoredView | null)[] };

export type StoredView = {
  /** JSON text; null: missing, though other parts of the view are stored. */
  view: string | null;
  sequence: number;
  lists: readonly string[];
  order: number;
  /** Lists of `lists` that lack the view or have it at another order. */
  missingIn: readonly string[];
};

export type OrphanEntry = { list: string; key: string };

/** Keys of one call; each step of a scan takes some milliseconds of the store's time. */
export const keysMax = 500;

/** Views examined in one step of a removal: some 2.5 ms, if each is in five lists. */
export const removedMax = 100;
