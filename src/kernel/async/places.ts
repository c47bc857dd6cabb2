/** What is refused, to whom, and how much the owner may have. */
export type NoPlace = { refused: 'owner' | 'all'; limit: number };

/** Places that owners take at once or not at all, of which none has more than it may. */
export type Places = {
  /** Takes so many; disposing gives them back. */
  take(owner: string, amount?: number): Disposable | NoPlace;
};

/** So many owners at least share the places: one alone leaves room for those that come. */
const OWNERS_MIN = 3;
/** An owner that was refused because all was taken counts among those that share for so long. */
const ASKED_MS = 10_000;

/** The most that one owner may have of so many, 1 at least: two leave room for a third one. */
export function thirdOf(max: number): number {
  return Math.max(1, Math.floor(max / OWNERS_MIN));
}

/**
 * Without `perOwner` an owner has a third at most, and less while more than three share the places:
 * those that hold some, and those that asked and got none. What is given back is then for the
 * latter, since the former have their share. One that asks has 1 at least, if it is free.
 * @param options `max`: of all owners; `perOwner`: of one
 */
export function createPlaces({ max, perOwner }: { max: number; perOwner?: number }): Places {
  const held = new Map<string, number>();
  /** Until when an owner that got none counts. */
  const asking = new Map<string, number>();
  let sum = 0;

  function shareOf(owner: string): number {
    const now = performance.now();
    for (const [one, until] of asking) if (until <= now || held.has(one)) asking.delete(one);
    const owners = new Set([...held.keys(), ...asking.keys(), owner]).size;
    return Math.max(1, Math.floor(max / Math.max(OWNERS_MIN, owners)));
  }
  function add(owner: string, amount: number): void {
    const left = (held.get(owner) ?? 0) + amount;
    sum += amount;
    if (left === 0) held.delete(owner);
    else held.set(owner, left);
  }
  return {
    take(owner, amount = 1) {
      const limit = perOwner ?? shareOf(owner);
      if ((held.get(owner) ?? 0) + amount > limit) return { refused: 'owner', limit };
      if (sum + amount > max) {
        if (perOwner === undefined) asking.set(owner, performance.now() + ASKED_MS);
        return { refused: 'all', limit };
      }
      add(owner, amount);
      let isHeld = true;
      return {
        [Symbol.dispose]() {
          if (isHeld) add(owner, -amount);
          isHeld = false;
        },
      };
    },
  };
}
