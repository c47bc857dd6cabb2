/** A timer may fire this much before its time: that tick is over. */
const EARLY_MS = 2;

/**
 * Milliseconds until the next multiple of the period on this process's clock. Polls that wait this
 * long wake the process together, and their requests go out in one write.
 */
export function untilTickOf(everyMs: number): number {
  const leftMs = Math.ceil(everyMs - (performance.now() % everyMs));
  return leftMs > EARLY_MS ? leftMs : leftMs + everyMs;
}

/** Does the work at each multiple of the period, which does not keep the process alive. */
export function everyTick(everyMs: number, work: () => void): Disposable {
  let timer: NodeJS.Timeout;
  const wait = () => (timer = setTimeout(tick, untilTickOf(everyMs)).unref());
  function tick(): void {
    wait();
    work();
  }
  wait();
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}
