import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { clearTimer, contexts, startTimer, type Clock, type Context } from './clock.ts';

/** The real ones, as they were before. */
export const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  dateNow: Date.now,
  performanceNow: performance.now.bind(performance),
  random: Math.random,
  abortTimeout: AbortSignal.timeout.bind(AbortSignal),
  abortAny: AbortSignal.any.bind(AbortSignal),
  pause: timersPromises.setTimeout,
  randomBytes: crypto.randomBytes,
  randomInt: crypto.randomInt,
  randomUUID: crypto.randomUUID,
};

let isInstalled = false;

/**
 * Replaces what the service takes time and randomness from. The replacements serve code that runs
 * in virtual time; everything else in the process gets the real thing.
 */
export function replaceTimers(): void {
  if (isInstalled) return;
  isInstalled = true;
  const virtual = () => contexts.getStore();
  const globals: Record<string, unknown> = {
    setTimeout(run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setTimeout(run, ms, ...given);
      return startTimer(context, () => run(...given), ms, null);
    },
    setInterval(run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setInterval(run, ms, ...given);
      return startTimer(context, () => run(...given), ms, ms);
    },
    setImmediate(run: (...given: unknown[]) => void, ...given: unknown[]) {
      const context = virtual();
      if (context === undefined) return real.setImmediate(run, ...given);
      return startTimer(context, () => run(...given), 0, null);
    },
    clearTimeout(handle: NodeJS.Timeout) {
      if (!clearTimer(handle)) real.clearTimeout(handle);
    },
    clearInterval(handle: NodeJS.Timeout) {
      if (!clearTimer(handle)) real.clearInterval(handle);
    },
    clearImmediate(handle: NodeJS.Immediate) {
      if (!clearTimer(handle)) real.clearImmediate(handle);
    },
  };
  Object.assign(globalThis, globals);
  const clocked = (time: (clock: Clock) => number, otherwise: () => number) => () => {
    const context = virtual();
    return context === undefined ? otherwise() : time(context.clock);
  };
  Date.now = clocked(({ startedAt, nowMs }) => Math.floor(startedAt + nowMs), real.dateNow);
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
  const random = () => virtual()?.clock.random;
  const modules: Record<string, unknown> = {
    randomBytes: (count: number) => random()?.bytes(count) ?? real.randomBytes(count),
    randomUUID: () => random()?.bytes(16).toString('hex') ?? real.randomUUID(),
    randomInt: (from: number, to?: number) => {
      const [min, max] = to === undefined ? [0, from] : [from, to];
      return random()?.integer(min, max - 1) ?? real.randomInt(min, max);
    },
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
