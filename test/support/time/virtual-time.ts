import { AsyncLocalStorage } from 'node:async_hooks';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { createRandom, type Random } from '#test/support/random.ts';

/** Whose code runs: its timers go with it. */
export type Owner = { isDead: boolean };

/**
 * The time and the randomness of one simulation. Timers are run one by one in the order of their
 * times, each once nothing else is left to do, so that a run depends on its seed alone.
 */
export type VirtualTime = {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs code of this owner: its timers, and the code that follows from it, are the owner's. */
  runAs<Result>(owner: Owner, work: () => Result): Result;
  /** Lets time pass until the condition holds or `withinMs` are over; returns whether it holds. */
  runUntil(condition: () => boolean, withinMs: number): Promise<boolean>;
  /** Errors that a timer's callback threw; there are to be none. */
  readonly failures: unknown[];
};

type Timer = {
  at: number;
  order: number;
  run: () => void;
  everyMs: number | null;
  context: Context;
  isCleared: boolean;
};
type Context = { owner: Owner; clock: Clock };
type Clock = { timers: Heap; random: Random; startedAt: number; nowMs: number; orders: number };

const contexts = new AsyncLocalStorage<Context>();
/** The first moment of each simulation. */
const START = Date.parse('2026-03-01T12:00:00.000Z');

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  dateNow: Date.now,
  performanceNow: performance.now.bind(performance),
  random: Math.random,
  abortTimeout: AbortSignal.timeout.bind(AbortSignal),
  abortAny: AbortSignal.any.bind(AbortSignal),
  pause: timersPromises.setTimeout,
  randomBytes: crypto.randomBytes,
  randomUUID: crypto.randomUUID,
};

export function createVirtualTime(seed: number): VirtualTime {
  install();
  const random = createRandom(seed, 'process');
  const clock: Clock = { timers: createHeap(), random, startedAt: START, nowMs: 0, orders: 0 };
  const failures: unknown[] = [];

  async function runUntil(condition: () => boolean, withinMs: number): Promise<boolean> {
    const end = clock.nowMs + withinMs;
    for (;;) {
      // When this callback runs, no promise is left that could go on.
      await new Promise<void>((resolve) => void real.setImmediate(resolve));
      if (condition()) return true;
      const timer = clock.timers.first();
      if (timer === undefined || timer.at > end) {
        clock.nowMs = end;
        return false;
      }
      clock.timers.takeFirst();
      if (timer.isCleared || timer.context.owner.isDead) continue;
      clock.nowMs = Math.max(clock.nowMs, timer.at);
      if (timer.everyMs === null) timer.isCleared = true;
      else schedule(timer, timer.everyMs);
      try {
        contexts.run(timer.context, timer.run);
      } catch (error) {
        failures.push(error);
      }
    }
  }
  return {
    now: () => START + clock.nowMs,
    runAs: (owner, work) => contexts.run({ owner, clock }, work),
    runUntil,
    failures,
  };
}

function schedule(timer: Timer, afterMs: number): void {
  const { clock } = timer.context;
  timer.at = clock.nowMs + Math.max(1, Number.isFinite(afterMs) ? afterMs : 1);
  timer.order = clock.orders += 1;
  clock.timers.add(timer);
}

function start(context: Context, run: () => void, afterMs: number, everyMs: number | null) {
  const timer = { at: 0, order: 0, run, everyMs, context, isCleared: false };
  schedule(timer, afterMs);
  const handle = {
    timer,
    ref: () => handle,
    unref: () => handle,
    hasRef: () => true,
    refresh: () => handle,
    close: () => handle,
    [Symbol.dispose]: () => void (timer.isCleared = true),
  };
  return handle;
}

function clear(handle: unknown): boolean {
  if (typeof handle !== 'object' || handle === null || !('timer' in handle)) return false;
  (handle.timer as Timer).isCleared = true;
  return true;
}

let isInstalled = false;

/**
 * Replaces what the service takes time and randomness from. The replacements serve code that a
 * simulation runs; everything else in the process gets the real thing.
 */
function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  const virtual = () => contexts.getStore();
  const globals: Record<string, unknown> = {
    setTimeout(run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setTimeout(run, ms, ...given);
      return start(context, () => run(...given), ms, null);
    },
    setInterval(run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setInterval(run, ms, ...given);
      return start(context, () => run(...given), ms, ms);
    },
    setImmediate(run: (...given: unknown[]) => void, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setImmediate(run, ...given);
      return start(context, () => run(...given), 0, null);
    },
    clearTimeout(handle: NodeJS.Timeout) {
      if (!clear(handle)) real.clearTimeout(handle);
    },
    clearInterval(handle: NodeJS.Timeout) {
      if (!clear(handle)) real.clearInterval(handle);
    },
  };
  Object.assign(globalThis, globals);
  const clocked = (time: (clock: Clock) => number, otherwise: () => number) => () => {
    const context = virtual();
    return context === undefined ? otherwise() : time(context.clock);
  };
  Date.now = clocked(({ startedAt, nowMs }) => startedAt + nowMs, real.dateNow);
  performance.now = clocked(({ nowMs }) => nowMs, real.performanceNow);
  Math.random = clocked(({ random }) => random.next(), real.random);
  installModules(virtual);
}

function installModules(virtual: () => Context | undefined): void {
  AbortSignal.timeout = (ms) => {
    if (virtual() === undefined) return real.abortTimeout(ms);
    const timeout = new AbortController();
    setTimeout(() => timeout.abort(new DOMException('timed out', 'TimeoutError')), ms);
    return timeout.signal;
  };
  AbortSignal.any = (signals) => {
    const sources = [...signals];
    return virtual() === undefined ? real.abortAny(sources) : anyOf(sources);
  };
  timersPromises.setTimeout = (ms, value, options) =>
    virtual() === undefined
      ? real.pause(ms, value, options)
      : pause(ms ?? 0, options?.signal).then(() => value as never);
  const bytes = (count: number) => virtual()?.clock.random.bytes(count);
  const modules: Record<string, unknown> = {
    randomBytes: (count: number) => bytes(count) ?? real.randomBytes(count),
    randomUUID: () => bytes(16)?.toString('hex') ?? real.randomUUID(),
  };
  Object.assign(crypto, modules);
  syncBuiltinESMExports();
}

/**
 * The runtime keeps its own kind as long as a source may abort, which one of a killed process never
 * does: each run would stay in memory.
 */
function anyOf(sources: readonly AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const source of sources) {
    if (source.aborted) either.abort(source.reason);
    source.addEventListener('abort', () => either.abort(source.reason), { once: true });
  }
  return either.signal;
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

type Heap = { add(timer: Timer): void; first(): Timer | undefined; takeFirst(): void };

/** A binary heap: the earliest timer first, and of two at the same time the one set first. */
function createHeap(): Heap {
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
