/** What is to happen in simulated time. */
export type Agenda<Step> = {
  /** Time of the next step; Infinity: there is none. */
  nextAt(): number;
  add(at: number, step: Step): void;
  /** Takes the next step; of several at one time the one that was added first. */
  next(): Step;
};

/** An agenda as a binary heap. */
export function createAgenda<Step>(): Agenda<Step> {
  type Item = { at: number; order: number; step: Step };
  const items: Item[] = [];
  let added = 0;
  const isBefore = (one: number, other: number) => {
    const [a, b] = [items[one], items[other]];
    if (a === undefined || b === undefined) return a !== undefined;
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  };
  function swap(one: number, other: number): void {
    const [a, b] = [items[one], items[other]];
    if (a !== undefined && b !== undefined) [items[one], items[other]] = [b, a];
  }
  return {
    nextAt: () => items[0]?.at ?? Infinity,
    add(at: number, step: Step): void {
      items.push({ at, order: added, step });
      added += 1;
      for (let index = items.length - 1; index > 0;) {
        const parent = (index - 1) >> 1;
        if (!isBefore(index, parent)) return;
        swap(index, parent);
        index = parent;
      }
    },
    next(): Step {
      swap(0, items.length - 1);
      const first = items.pop();
      if (first === undefined) throw new RangeError('the agenda is empty');
      for (let index = 0; ;) {
        const left = 2 * index + 1;
        const least = isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(least, index)) return first.step;
        swap(index, least);
        index = least;
      }
    },
  };
}
