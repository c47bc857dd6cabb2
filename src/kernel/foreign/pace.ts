/** The time that a transfer has; meanwhile it holds a connection, memory and a place. */
export const SLOWEST = {
  /** A second for each of them that has passed. */
  bytesPerSecond: 64 * 1024,
  /** What a transfer has at its beginning, and at most at any time. */
  creditMs: 120_000,
};

/**
 * The time that a transfer may wait for its other side: 120 s, and a second more for each 64 KiB
 * that pass, but never more than 120 s ahead. So it takes at most 120 s and a second for each 64
 * KiB, however its bytes are spread. The time in which that side is not waited for does not count.
 */
export type Pace = {
  /** From here on the other side is waited for. */
  wait(): void;
  /** It has given or taken so many bytes, and is not waited for. */
  passed(bytes: number): void;
} & Disposable;

/**
 * @param onTooSlow called once the time is used up, or after a wait of `silenceMs`
 * @param options `silenceMs`: the longest single wait
 */
export function createPace(
  onTooSlow: () => void,
  { silenceMs = Infinity }: { silenceMs?: number } = {},
): Pace {
  let creditMs = SLOWEST.creditMs;
  let waitingSince: number | null = null;
  let timer: NodeJS.Timeout | undefined;

  function stop(): void {
    clearTimeout(timer);
    if (waitingSince !== null) creditMs -= performance.now() - waitingSince;
    waitingSince = null;
  }
  return {
    wait() {
      if (waitingSince !== null) return;
      waitingSince = performance.now();
      timer = setTimeout(onTooSlow, Math.max(0, Math.min(creditMs, silenceMs)));
    },
    passed(bytes) {
      stop();
      const earnedMs = (bytes / SLOWEST.bytesPerSecond) * 1_000;
      creditMs = Math.min(SLOWEST.creditMs, creditMs + earnedMs);
    },
    [Symbol.dispose]: stop,
  };
}
