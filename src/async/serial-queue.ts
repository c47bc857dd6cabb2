import { Unavailable } from '#src/errors.ts';

/**
 * Lets one piece of work after the other have its turn: what takes the store long is not to be
 * asked of it twice at once, with all others waiting behind both.
 * @param waitingMax beyond it who comes is refused: Unavailable('read-model')
 */
export function createTurns(waitingMax: number): <T>(work: () => Promise<T>) => Promise<T> {
  let line: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return async (work) => {
    if (waiting >= waitingMax)
      throw new Unavailable('read-model', new Error(`${waiting} wait for their turn`));
    waiting += 1;
    const turn = line.then(work);
    line = turn.catch(() => undefined);
    return turn.finally(() => (waiting -= 1));
  };
}
