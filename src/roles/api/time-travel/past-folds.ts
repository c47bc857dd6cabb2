import type { Projection } from '#projections/projection.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import { createFairExecutor, type FairExecutor } from '#src/kernel/async/fair-executor.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { foldUpTo, nothing, type Fold } from './past-fold.ts';

/** Folds of the past, one at a time in a process, in turns between organizations. */
export type Folds = {
  /**
   * The projection over these subjects up to the sequence, in as many turns of the organization as
   * it takes. @throws Unavailable if that is longer than is possible now; what is folded is kept
   */
  fold<View>(
    asker: Asker,
    projection: Projection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold>;
  /** Other work that takes a turn. @throws Unavailable without a place to wait */
  inTurn: FairExecutor;
};

/** A request with the time that its turns have taken. */
export type Asker = { organizationId: string; cameAt: number; foldedMs: number };

export function newAsker(organizationId: string): Asker {
  return { organizationId, cameAt: performance.now(), foldedMs: 0 };
}

/** Requests that fold or wait for their turn, of all organizations and of one. */
const PLACES = { places: 64, placesPerOwner: 8 };
/** A request folds for so long; then another organization has its turn. */
const TURN_MS = 500;
/** A request's turns together; with waiting for them, `ANSWER_MS`. Beyond, the answer is 503. */
const FOLD_MS = 8_000;
const ANSWER_MS = 30_000;
/**
 * Folds that are kept, the last used first: a client that turns pages requests the same fold again.
 */
const KEPT_MAX = 24;
const KEPT_VIEWS_MAX = 300_000;

/** @param parts read at the first fold: a server that makes only documents has none */
export function createFolds(parts: { context: { eventStore: EventStore } }): Folds {
  let kept: { of: string; fold: Fold }[] = [];
  /** One fold at a time: queries for the past must not slow down the present. */
  const inTurn = createFairExecutor(PLACES, 'event-log');

  function keep(of: string, fold: Fold): void {
    const others = kept.filter((one) => one.of !== of || one.fold.upTo !== fold.upTo);
    let views = 0;
    kept = [{ of, fold }, ...others].slice(0, KEPT_MAX).filter((one, place) => {
      views += one.fold.views.size;
      return place === 0 || views <= KEPT_VIEWS_MAX;
    });
  }

  /** One turn of a fold; an incomplete one is kept, and the next turn goes on there. */
  async function foldSome<View>(
    projection: Projection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold> {
    const of = subjects.join(' ');
    const nearest = kept
      .filter((one) => one.of === of && one.fold.upTo <= upTo)
      .reduce((best, one) => (one.fold.upTo > best.upTo ? one.fold : best), nothing);
    // It is used up. If this turn fails, its views are those of no sequence.
    if (!nearest.isWhole) kept = kept.filter(({ fold }) => fold !== nearest);
    const step = { from: nearest, upTo, withinMs: TURN_MS };
    const folded = await foldUpTo(parts.context.eventStore, projection, subjects, step);
    keep(of, folded);
    return folded;
  }

  /** The whole fold, in as many turns of the organization as it takes. */
  async function fold<View>(
    asker: Asker,
    projection: Projection<View>,
    subjects: readonly string[],
    upTo: number,
  ): Promise<Fold> {
    for (;;) {
      const folded = await inTurn(asker.organizationId, async () => {
        const turnAt = performance.now();
        const some = await foldSome(projection, subjects, upTo);
        asker.foldedMs += performance.now() - turnAt;
        return some;
      });
      if (folded.isWhole) return folded;
      if (asker.foldedMs < FOLD_MS && performance.now() - asker.cameAt < ANSWER_MS) continue;
      const reason = `folded up to ${folded.upTo} of ${upTo} so far`;
      throw new Unavailable('event-log', new Error(reason));
    }
  }
  return { fold, inTurn };
}
