import { Unavailable } from '#src/errors.ts';

/**
 * Runs tasks one after the other, so that two slow requests to the store never run at once and
 * block all others behind them.
 * @param waitingMax tasks that may run or wait at once; a further one fails with Unavailable
 * @param part what the tasks burden, named by that Unavailable
 */
export function createSerialQueue(
  waitingMax: number,
  part: Unavailable['part'],
): <T>(work: () => Promise<T>) => Promise<T> {
  let line: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return async (work) => {
    if (waiting >= waitingMax)
      throw new Unavailable(part, new Error(`${waiting} wait for their turn`));
    waiting += 1;
    const turn = line.then(work);
    line = turn.catch(() => undefined);
    return turn.finally(() => (waiting -= 1));
  };
}
