import type { Tier } from '#test/tiers.ts';
import { faultsOf, isExpired, QUARANTINE_DAYS, type Quarantine } from './flaky.ts';
import {
  failedTests,
  failureLine,
  isOfReal,
  nameOf,
  type Failure,
  type RunRecord,
} from './outcomes.ts';
import { touchedBy } from './touched.ts';

/** More failed tests than these are no chance. */
export const REPEATED_MAX = 2;
/** How often a failed test is repeated alone; then once more beside its neighbours. */
export const TIMES_ALONE = 5;
export const TIMES = TIMES_ALONE + 1;

/** What one run of vitest came to. */
export type Ran = {
  /** Null: it ended before its reporter wrote one. */
  record: RunRecord | null;
  code: number;
  /** What services that crashed in tests left: a line each. */
  crashes: string[];
};

export type Plan = {
  /** A line for each failure of a run that is red already; then nothing is repeated. */
  failed: string[];
  repeat: Failure[];
  quarantined: Failure[];
};

/** What the rule makes of a run: see "When a test fails" in test/README.md. */
export function plan(
  ran: Ran,
  given: { tiers: readonly Tier[]; changed: readonly string[]; quarantine: Quarantine; at: Date },
): Plan {
  const { quarantine, changed, at } = given;
  // The nightly run blocks on all.
  const lines = given.tiers.includes('nightly') ? [] : quarantine.lines;
  const lineOf = (failure: Failure) => lines.find(({ test }) => test === nameOf(failure));
  const whyNot = (failure: Failure): string | null => {
    if (!isOfReal(failure)) return 'it is not of `npm run test:real`';
    const touching = touchedBy(failure.file, changed);
    if (touching !== null) return `the change touches it: ${touching}`;
    return lineOf(failure) === undefined
      ? null
      : `it is in quarantine for more than ${QUARANTINE_DAYS} days`;
  };
  const isExcused = (failure: Failure): boolean => {
    const line = lineOf(failure);
    if (!isOfReal(failure)) return false;
    return line !== undefined && !isExpired(line, at) && touchedBy(failure.file, changed) === null;
  };
  const failures = failedTests(ran.record?.files ?? []);
  const quarantined = failures.filter(isExcused);
  const others = failures.filter((failure) => !isExcused(failure));
  const broken = [...brokenIn(ran), ...faultsOf(quarantine)];
  const isMany = others.length > REPEATED_MAX;
  const isRed = broken.length > 0 || isMany || others.some((failure) => whyNot(failure) !== null);
  if (!isRed) return { failed: [], repeat: others, quarantined };
  const reasoned = others.map((failure) => {
    const why = whyNot(failure) ?? (isMany ? `${others.length} tests failed` : 'the run is red');
    return `${failureLine(failure)} (not repeated: ${why})`;
  });
  return { failed: [...broken, ...reasoned], repeat: [], quarantined };
}

/** What failed in a run that is no test: none of it is ever repeated. */
export function brokenIn({ record, code, crashes }: Ran): string[] {
  const lines = crashes.map((line) => `a service crashed: ${line}`);
  if (record === null) return [...lines, `vitest ended with ${code} before its last report`];
  lines.push(...record.broken);
  const tests = record.files.flatMap((file) => file.tests);
  const count = (wanted: string) => tests.filter(({ state }) => state === wanted).length;
  if (lines.length > 0 || count('failed') > 0) return lines;
  if (count('passed') === 0) return [`no test ran, vitest ended with ${code}`];
  if (code !== 0) return [`vitest ended with ${code}, though no test failed`];
  return [];
}

/** Why the repeats of a failed test do not excuse it; null: it has passed all of them. */
export function repeatedInVain(failure: Failure, repeats: readonly Ran[]): string | null {
  const [broken] = repeats.flatMap(brokenIn);
  if (broken !== undefined) return broken;
  const states = repeats
    .flatMap(({ record }) => record?.files ?? [])
    .filter(({ file }) => file === failure.file)
    .flatMap(({ tests }) => tests.filter(({ title }) => title === failure.title))
    .map(({ state }) => state);
  const failed = states.filter((state) => state === 'failed').length;
  if (failed > 0) return `failed ${failed + 1} of ${states.length + 1} times`;
  const passed = states.filter((state) => state === 'passed').length;
  return passed >= TIMES ? null : `ran ${passed} of the ${TIMES} times that it is repeated`;
}

/** The other files that ran while a test did, as they would beside it again. */
export function neighboursOf(failure: Failure, { files }: RunRecord): string[] {
  return files
    .filter(({ file }) => file !== failure.file)
    .filter((one) => one.startedAt < failure.endedAt && one.endedAt > failure.startedAt)
    .map(({ file }) => file);
}
