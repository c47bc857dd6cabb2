import { Unavailable } from '#src/kernel/errors.ts';
import { createFairSlots } from './fair-slots.ts';

/** Runs the work when it is this owner's turn. */
export type FairExecutor = <T>(owner: string, work: () => Promise<T>) => Promise<T>;

/**
 * Runs tasks one after the other, so that two slow requests to the store never run at once and
 * block all others behind them. Owners that wait have turns: a task waits for the running one, for
 * its owner's earlier ones, and before each of these for one of each other owner.
 * @param bounds tasks that may run or wait at once, of all owners and of one; a further one fails
 *   with Unavailable
 * @param part what the tasks burden, named by that Unavailable
 */
export function createFairExecutor(
  bounds: { places: number; placesPerOwner: number },
  part: Unavailable['part'],
): FairExecutor {
  const turns = createFairSlots({ slots: 1, slotsPerOwner: 1, ...bounds });
  return async (owner, work) => {
    const turn = turns.acquire(owner);
    if (turn === null) throw new Unavailable(part, new Error('as many as may wait for their turn'));
    using _ = await turn;
    return await work();
  };
}
