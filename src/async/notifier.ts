/** Wakes those who wait in this process. */
export type Bell = {
  ring(): void;
  /**
   * Resolves when it rings, the signal aborts, or (where a bound is given) after so many
   * milliseconds.
   */
  heard(signal: AbortSignal, withinMs?: number): Promise<void>;
};

export function createBell(): Bell {
  const waiting = new Set<() => void>();
  return {
    ring() {
      for (const wake of waiting) wake();
    },
    async heard(signal, withinMs) {
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
