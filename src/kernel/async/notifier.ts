/** Wakes the waiting callers of this process. */
export type Notifier = {
  notify(): void;
  /**
   * Resolves at the next `notify`, when the signal aborts, or after `withinMs` milliseconds if
   * given.
   */
  wait(signal: AbortSignal, withinMs?: number): Promise<void>;
};

export function createNotifier(): Notifier {
  const waiting = new Set<() => void>();
  return {
    notify() {
      for (const wake of waiting) wake();
    },
    async wait(signal, withinMs) {
      if (signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      const timer = withinMs === undefined ? undefined : setTimeout(wake, withinMs);
      waiting.add(wake);
      signal.addEventListener('abort', wake);
      await promise;
      signal.removeEventListener('abort', wake);
      waiting.delete(wake);
      clearTimeout(timer);
    },
  };
}
