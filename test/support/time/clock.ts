import { AsyncLocalStorage } from 'node:async_hooks';
import type { Random } from '#test/support/random.ts';

/** Whose code runs: its timers go with it. */
export type Owner = { isDead: boolean };

export type Timer = {
  at: number;
  order: number;
  run: () => void;
  everyMs: number | null;
  context: Context;
  isCleared: boolean;
};
export type Context = { owner: Owner; clock: Clock };
export type Clock = {
  timers: Heap;
  random: Random;
  startedAt: number;
  nowMs: number;
  orders: number;
};

/** Of the code that runs: in which virtual time it is, if in any. */
export const contexts = new AsyncLocalStorage<Context>();

/** Sets a timer from this moment on. */
export function schedule(timer: Timer, afterMs: number): void {
  const { clock } = timer.context;
  timer.at = clock.nowMs + Math.max(1, Number.isFinite(afterMs) ? afterMs : 1);
  timer.order = clock.orders += 1;
  clock.timers.add(timer);
}

/** What `setTimeout` returns. */
export function startTimer(
  context: Context,
  run: () => void,
  afterMs: number,
  everyMs: number | null,
) {
  const timer = { at: 0, order: 0, run, everyMs, context, isCleared: false };
  schedule(timer, afterMs);
  const handle = {
    timer,
    ref: () => handle,
    unref: () => handle,
    hasRef: () => true,
    refresh() {
      handle.timer.isCleared = true;
      handle.timer = { ...timer, isCleared: false };
      schedule(handle.timer, afterMs);
      return handle;
    },
    close: () => handle[Symbol.dispose](),
    [Symbol.dispose]: () => void (handle.timer.isCleared = true),
  };
  return handle;
}

/** Whether this is what `startTimer` returned; its timer does not run any more then. */
export function clearTimer(handle: unknown): boolean {
  if (typeof handle !== 'object' || handle === null || !('timer' in handle)) return false;
  (handle.timer as Timer).isCleared = true;
  return true;
}

type Heap = { add(timer: Timer): void; first(): Timer | undefined; takeFirst(): void };

/** A binary heap: the earliest timer first, and of two at the same time the one set first. */
export function createHeap(): Heap {
  const timers: Timer[] = [];
  const isBefore = (one: number, other: number) => {
    const [a, b] = [timers[one], timers[other]];
    if (a === undefined || b === undefined) return a !== undefined;
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  };
  function swap(one: number, other: number): void {
    [timers[one], timers[other]] = [timers[other] as Timer, timers[one] as Timer];
  }
  return {
    first: () => timers[0],
    add(timer) {
      timers.push(timer);
      let at = timers.length - 1;
      for (let above = (at - 1) >> 1; at > 0 && isBefore(at, above); above = (at - 1) >> 1) {
        swap(at, above);
        at = above;
      }
    },
    takeFirst() {
      const last = timers.pop();
      if (timers.length === 0 || last === undefined) return;
      timers[0] = last;
      for (let at = 0; ;) {
        const left = 2 * at + 1;
        const least = isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(least, at)) return;
        swap(least, at);
        at = least;
      }
    },
  };
}
