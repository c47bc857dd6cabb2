/** How a pool did over a time. */
export type PoolFigures = {
  creates: number;
  /** Creates that an idle browser served at once. */
  warm: number;
  /** How long creates waited for their browser, milliseconds. */
  waitP50Ms: number;
  waitP95Ms: number;
  /** Hours that browsers waited idle, of all browsers together. */
  idleHours: number;
  /** Mean numbers of idle browsers and of those in use. */
  meanIdle: number;
  meanInUse: number;
};

/** Collects the figures of the time between two moments, milliseconds since the epoch. */
export function createFigures(from: number, until: number) {
  const waits: number[] = [];
  let [warm, idleMs, busyMs] = [0, 0, 0];
  return {
    served(at: number, waitMs: number): void {
      if (at < from || at > until) return;
      waits.push(waitMs);
      if (waitMs === 0) warm += 1;
    },
    pass(begin: number, end: number, { idle, busy }: { idle: number; busy: number }): void {
      const ms = Math.max(0, Math.min(end, until) - Math.max(begin, from));
      idleMs += idle * ms;
      busyMs += busy * ms;
    },
    close: () => figuresOf({ waits, warm, idleMs, busyMs, spanMs: until - from }),
  };
}

/** @param spanMs the time that the figures are of */
export function figuresOf(sums: {
  waits: readonly number[];
  warm: number;
  idleMs: number;
  busyMs: number;
  spanMs: number;
}): PoolFigures {
  const { waits, warm, idleMs, busyMs, spanMs } = sums;
  const sorted = waits.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  const span = Math.max(1, spanMs);
  return {
    creates: waits.length,
    warm,
    waitP50Ms: at(0.5),
    waitP95Ms: at(0.95),
    idleHours: idleMs / 3_600_000,
    meanIdle: idleMs / span,
    meanInUse: busyMs / span,
  };
}
