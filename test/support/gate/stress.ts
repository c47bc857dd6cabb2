import { cpus } from 'node:os';
import { Worker } from 'node:worker_threads';
import { brokenIn, type Ran } from './rule.ts';
import { failedTests, failureLine, isOfReal, type RunRecord } from './outcomes.ts';

/** With the rest of `.ci/run` on a change of many files, fifteen minutes. */
const SECONDS_MAX = 90;
/** As at CockroachDB, whose gate stresses the tests of a change in the same way. */
const FILES_MAX = 10;
/** A process of vitest's begins with imports: seconds on two cores that do nothing else. */
const START_SECONDS = 4;
/** With each core loaded a test gets about half of it. */
const SLOWDOWN = 2;
/** How often each file runs, if the time is enough, else how often at least. */
const ROUNDS = [
  { alone: 10, loaded: 3 },
  { alone: 6, loaded: 2 },
  { alone: 3, loaded: 1 },
] as const;

export type Stress = { files: string[]; alone: number; loaded: number; leftOut: string[] };

/**
 * Which files of `npm run test:real` a run has to stress: those that the change edits or adds, the
 * newest first, as many as fit into the time, by what they just took.
 */
export function stressOf({ files }: RunRecord, changed: readonly string[]): Stress {
  const passed = files.filter(
    (outcome) =>
      isOfReal(outcome) &&
      outcome.tests.some(({ state }) => state === 'passed') &&
      outcome.tests.every(({ state }) => state !== 'failed'),
  );
  const secondsOf = new Map(
    passed.map(({ file, startedAt, endedAt }) => [file, (endedAt - startedAt) / 1000]),
  );
  const wanted = changed.filter((file) => secondsOf.has(file));
  const [most, , least] = ROUNDS;
  let total = START_SECONDS;
  const chosen = wanted.slice(0, FILES_MAX).filter((file) => {
    const seconds = secondsOf.get(file) ?? 0;
    if (secondsFor(least, total + seconds) > SECONDS_MAX) return false;
    total += seconds;
    return true;
  });
  const rounds = ROUNDS.find((one) => secondsFor(one, total) <= SECONDS_MAX) ?? most;
  return { ...rounds, files: chosen, leftOut: wanted.filter((file) => !chosen.includes(file)) };
}

const secondsFor = ({ alone, loaded }: { alone: number; loaded: number }, seconds: number) =>
  (alone + SLOWDOWN * loaded) * seconds;

/** What the stress found, a line each: none if each file passed each time. */
export function stressFailures({ files, alone, loaded }: Stress, runs: readonly Ran[]): string[] {
  const outcomes = runs.flatMap(({ record }) => record?.files ?? []);
  const failures = failedTests(outcomes).map((failure) => failureLine(failure));
  const counted = Map.groupBy(failures, (line) => line);
  const missing = files.flatMap((file) => {
    const ran = outcomes.filter((outcome) => outcome.file === file).length;
    return ran === alone + loaded ? [] : [`${file}: ran ${ran} of ${alone + loaded} times`];
  });
  return [
    ...runs.flatMap(brokenIn),
    ...[...counted].map(([line, all]) => `${line} (${all.length} of ${alone + loaded} times)`),
    ...missing,
  ];
}

/** Does something while each core also runs a loop; the loops end with it. */
export async function withLoad<Result>(work: () => Promise<Result>): Promise<Result> {
  const loops = cpus().map(() => new Worker('for (;;);', { eval: true }));
  try {
    return await work();
  } finally {
    await Promise.all(loops.map((loop) => loop.terminate()));
  }
}
