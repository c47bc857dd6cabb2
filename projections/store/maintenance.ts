import type { ViewWrite } from './views.ts';

/**
 * Port: what looks after the stores that hold projections' views; readers have no need of it.
 * Adapters: those of Views. Every method throws Unavailable('read-model') as theirs do.
 */
export type Upkeep = {
  /** All stores that were kept or claimed, or are half removed. */
  stores(): Promise<StoreFacts[]>;
  /** Says that the projection is kept folded for so long; any number may. */
  keep(projection: string, forMs: number): Promise<void>;
  /**
   * Takes a store for one holder alone for so long, or goes on holding it (0: gives it up). False
   * where another holds it.
   */
  claim(projection: string, holder: string, forMs: number): Promise<boolean>;

  /**
   * In one step, the views of `by` become those of the projection, whose own are then removed, if
   * its checkpoint is not below the projection's: its readers never step back. False where it is.
   */
  replace(projection: string, by: string): Promise<boolean>;
  /**
   * Writes views that were folded again at the checkpoint `at`, whatever is held of them. False
   * where the store is at another checkpoint by now, and nothing was written.
   */
  mend(projection: string, at: number, writes: readonly ViewWrite[]): Promise<boolean>;

  /** The keys of all views, some hundreds at a time; those written meanwhile may be missed. */
  keys(projection: string): AsyncIterable<string[]>;
  /** At most `count` keys, of views picked at random. */
  sample(projection: string, count: number): Promise<string[]>;
  /** What is held under these keys, and the checkpoint it is of. */
  held(projection: string, keys: readonly string[]): Promise<Held>;
  /** Where a key stands in a list though its view's own place does not say so. */
  strays(projection: string): AsyncIterable<Stray[]>;
};

export type StoreFacts = {
  projection: string;
  checkpoint: number;
  views: number;
  /** Whether somebody promised to keep it, and that time is not over. */
  isKept: boolean;
};

export type Held = { checkpoint: number; views: (HeldView | null)[] };

export type HeldView = {
  /** As it was written; null where there is none, though other parts of it are. */
  view: string | null;
  sequence: number;
  lists: readonly string[];
  order: number;
  /** Those of the lists in which it does not stand, or elsewhere. */
  missingIn: readonly string[];
};

export type Stray = { list: string; key: string };

/** Keys of one call; each step of a walk takes some milliseconds of the store's time. */
export const keysMax = 500;
