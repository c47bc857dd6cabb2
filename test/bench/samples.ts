/** Repeated measurements of one operation, in milliseconds. */
export type Samples = { p50: number; p95: number; p99: number; count: number };

export function summarize(measured: readonly number[]): Samples {
  const sorted = measured.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), count: sorted.length };
}

/** The duration of the work in milliseconds, and its result. */
export async function timed<Result>(
  work: () => Promise<Result>,
): Promise<{ ms: number; result: Result }> {
  const begunAt = performance.now();
  const result = await work();
  return { ms: performance.now() - begunAt, result };
}

/** One line of a table of milliseconds. */
export function row(name: string, { p50, p95, p99, count }: Samples): string {
  const cells = [p50, p95, p99].map((ms) => ms.toFixed(ms < 10 ? 2 : 0).padStart(9));
  return `${name.padEnd(44)}${cells.join('')}${String(count).padStart(6)}`;
}

/** A ratio compared with its goal. */
export type Verdict = {
  name: string;
  ratio: number;
  goal: number;
  isMet: boolean;
  /** Whether the goal is the least ratio; else the greatest. */
  isAtLeast: boolean;
  /** The same ratio of other services. */
  peers?: string;
};

/** @param peers the same ratio of other services, measured elsewhere */
export function atMost(name: string, ratio: number, goal: number, peers?: string): Verdict {
  const known = peers === undefined ? {} : { peers };
  return { name, ratio, goal, isMet: ratio <= goal, isAtLeast: false, ...known };
}

/** @param peers the same ratio of other services, measured elsewhere */
export function atLeast(name: string, ratio: number, goal: number, peers?: string): Verdict {
  const known = peers === undefined ? {} : { peers };
  return { name, ratio, goal, isMet: ratio >= goal, isAtLeast: true, ...known };
}
