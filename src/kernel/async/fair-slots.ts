/** Slots that owners share fairly; an owner is an organization, for example. */
export type FairSlots = {
  /**
   * Resolves with a slot when it is this owner's turn; disposing it gives it back. null: the owner,
   * or all together, have as many places as they may. If the signal aborts while it waits, it
   * resolves without a slot.
   */
  acquire(owner: string, signal?: AbortSignal): Promise<Disposable> | null;
  /** Whether somebody waits for a slot: a holder with much to do then gives its slot back. */
  isWanted(): boolean;
};

export type FairSlotsOptions = {
  /** Slots held at once, by all owners and by one. */
  slots: number;
  slotsPerOwner: number;
  /** Those that hold a slot or wait for one, of all owners and of one; left out: no bound. */
  places?: number;
  placesPerOwner?: number;
};

type Waiter = (slot: Disposable) => void;

/**
 * Owners that wait get a slot in turn, whatever the number of their waiters; the waiters of one
 * owner in the order of their coming.
 */
export function createFairSlots(options: FairSlotsOptions): FairSlots {
  const { slots, slotsPerOwner, places = Infinity, placesPerOwner = Infinity } = options;
  /** The owner whose turn is next comes first. */
  const waiting = new Map<string, Set<Waiter>>();
  const heldBy = new Map<string, number>();
  const placesOf = new Map<string, number>();
  let held = 0;
  let placesTaken = 0;

  function serve(): void {
    for (const [owner, waiters] of waiting) {
      if (held >= slots) return;
      if ((heldBy.get(owner) ?? 0) >= slotsPerOwner) continue;
      const [next] = waiters;
      if (next === undefined) continue;
      waiters.delete(next);
      // Behind all others; one that has a turn left is met again by this loop.
      waiting.delete(owner);
      if (waiters.size > 0) waiting.set(owner, waiters);
      held += 1;
      add(heldBy, owner, 1);
      next(slotOf(owner));
    }
  }
  function slotOf(owner: string): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]() {
        if (!isHeld) return;
        isHeld = false;
        held -= 1;
        add(heldBy, owner, -1);
        leave(owner);
        serve();
      },
    };
  }
  function leave(owner: string): void {
    placesTaken -= 1;
    add(placesOf, owner, -1);
  }
  return {
    acquire(owner, signal) {
      if (signal?.aborted === true) return Promise.resolve(NO_SLOT);
      if (placesTaken >= places || (placesOf.get(owner) ?? 0) >= placesPerOwner) return null;
      placesTaken += 1;
      add(placesOf, owner, 1);
      const { promise, resolve } = Promise.withResolvers<Disposable>();
      const waiters = waiting.get(owner) ?? new Set<Waiter>();
      const giveUp = () => {
        if (!waiters.delete(resolve)) return;
        if (waiters.size === 0) waiting.delete(owner);
        leave(owner);
        resolve(NO_SLOT);
      };
      waiters.add(resolve);
      waiting.set(owner, waiters);
      signal?.addEventListener('abort', giveUp, { once: true });
      void promise.then(() => signal?.removeEventListener('abort', giveUp));
      serve();
      return promise;
    },
    isWanted: () => waiting.size > 0,
  };
}

const NO_SLOT: Disposable = { [Symbol.dispose]: () => undefined };

function add(counts: Map<string, number>, owner: string, by: number): void {
  const count = (counts.get(owner) ?? 0) + by;
  if (count === 0) counts.delete(owner);
  else counts.set(owner, count);
}
