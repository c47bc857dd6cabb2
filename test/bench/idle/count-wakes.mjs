/**
 * Loaded into the service by `node --import`: counts what wakes it, by the line of its code that
 * asked for it: timers that fired, and reads that the thread pool has done. What arrives on a socket
 * answers one of these, or is a heartbeat. The first SIGUSR2 begins the count; the next one writes
 * it to the file IDLE_WAKES.
 */
import { createHook } from 'node:async_hooks';
import { writeFileSync } from 'node:fs';

const COUNTED = new Set(['Timeout', 'FSREQCALLBACK', 'FSREQPROMISE']);
const FRAMES = 40;
const OWN = /\/((?:src|events|projections)\/(?!async\/)[\w./-]+\.m?[jt]s):/;
/** A wait is its caller's, unless the caller is not on the stack. */
const WAITS = /\/(src\/kernel\/async\/[\w.-]+\.ts):/;
const PACKAGED = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;

const madeBy = new Map();
const fired = new Map();
let isCounting = false;

createHook({
  init(id, type) {
    if (COUNTED.has(type)) madeBy.set(id, placeOf());
  },
  before(id) {
    const by = isCounting ? madeBy.get(id) : undefined;
    if (by !== undefined) fired.set(by, (fired.get(by) ?? 0) + 1);
  },
  destroy(id) {
    madeBy.delete(id);
  },
}).enable();

process.on('SIGUSR2', () => {
  if (isCounting) writeFileSync(process.env.IDLE_WAKES, JSON.stringify(Object.fromEntries(fired)));
  isCounting = !isCounting;
});

/** The nearest file of the service on the stack, else the package, else Node. */
function placeOf() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const stack = new Error('where').stack ?? '';
  Error.stackTraceLimit = limit;
  return (
    OWN.exec(stack)?.[1] ?? PACKAGED.exec(stack)?.[1] ?? WAITS.exec(stack)?.[1] ?? nodeFileOf(stack)
  );
}

/** `_http_server` and the like; a timer's own lines come first. */
function nodeFileOf(stack) {
  const files = [...stack.matchAll(/\(node:([\w/]+):/g)].map(([, file]) => file);
  return `node:${files.find((file) => !/^(internal\/|timers$)/.test(file)) ?? 'internal'}`;
}
