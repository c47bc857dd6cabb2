/** Bounds how many attempts with an unknown key are answered. */
export type FailedAttempts = {
  /**
   * Notes one from this address. `first-beyond` is the first that is not to be answered, then come
   * those `beyond`, until the minute is over.
   */
  note(address: string): 'answer' | 'first-beyond' | 'beyond';
};

export type FailedAttemptsOptions = {
  perAddressMax: number;
  /** Of all addresses together. */
  max: number;
  now: () => number;
};

const WINDOW_MS = 60_000;

/** Counts by the minute, in this process; at most `max` addresses are kept. */
export function createFailedAttempts(options: FailedAttemptsOptions): FailedAttempts {
  const { perAddressMax, max, now } = options;
  let beganAt = now();
  let all = 0;
  const byAddress = new Map<string, number>();

  return {
    note(address) {
      if (now() - beganAt >= WINDOW_MS) {
        beganAt = now();
        all = 0;
        byAddress.clear();
      }
      all += 1;
      if (all > max) return all === max + 1 ? 'first-beyond' : 'beyond';
      const own = (byAddress.get(address) ?? 0) + 1;
      byAddress.set(address, own);
      if (own <= perAddressMax) return 'answer';
      return own === perAddressMax + 1 ? 'first-beyond' : 'beyond';
    },
  };
}
