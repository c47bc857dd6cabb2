import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tier } from '#test/tiers.ts';
import {
  FLAKY_FILE,
  flakeOf,
  isSecond,
  parseFlakes,
  parseQuarantine,
  QUARANTINE_FILE,
  QUARANTINE_LINES,
  quarantineLine,
  type Flake,
} from './flaky.ts';
import { failureLine, nameOf, type Failure, type RunRecord } from './outcomes.ts';
import { neighboursOf, plan, repeatedInVain, TIMES, TIMES_ALONE, type Ran } from './rule.ts';
import { stressFailures, stressOf, withLoad, type Stress } from './stress.ts';

/** Workers of a repeat beside the files that ran with it, as in `npm run test:real`. */
const BESIDE = '2';

/** What the gate needs of its surroundings. */
export type Surroundings = {
  /** The top of the project. */
  root: string;
  /** Runs vitest to its end, with these arguments and these variables set. */
  run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran>;
  /** What the change edits or adds, newest first. */
  changed: readonly string[];
  commit: string | null;
  commitsSince(date: string): number;
  /** What somebody else has to commit of these files, as lines; empty: the files are enough. */
  toCommit(files: readonly string[]): string;
  now(): Date;
  print(line: string): void;
};

/** What ends a run: `lines` are printed last, and it is green if nothing failed. */
type Result = { failed: string[]; remarks: string[]; forgiven: number };

/**
 * Runs the tests of these tiers and applies the rule for repeats. With arguments for vitest, such
 * as a file, nothing is stressed.
 * @returns whether the run is green
 */
export async function runGate(
  at: Surroundings,
  tiers: readonly Tier[],
  args: readonly string[],
): Promise<boolean> {
  const ran = await at.run(args, { TEST_TIERS: tiers.join() });
  const result = await judge(at, ran, { tiers, isWhole: args.length === 0 });
  const tests = ran.record?.files.flatMap((file) => file.tests) ?? [];
  const passed = tests.filter(({ state }) => state === 'passed').length + result.forgiven;
  at.print('');
  for (const line of ran.record?.summary ?? []) at.print(line);
  for (const line of result.remarks) at.print(line);
  for (const line of result.failed) at.print(`FAILED ${line}`);
  at.print(`${passed} passed, ${result.failed.length} failed`);
  return result.failed.length === 0;
}

async function judge(
  at: Surroundings,
  ran: Ran,
  { tiers, isWhole }: { tiers: readonly Tier[]; isWhole: boolean },
): Promise<Result> {
  const quarantine = parseQuarantine(readText(at, QUARANTINE_FILE));
  const { changed } = at;
  const planned = plan(ran, { tiers, changed, quarantine, at: at.now() });
  const remarks = planned.quarantined.map((failure) => `QUARANTINED ${failureLine(failure)}`);
  const { record } = ran;
  if (record === null || planned.failed.length > 0)
    return { failed: planned.failed, remarks, forgiven: 0 };
  const failed: string[] = [];
  const flakes: Flake[] = [];
  for (const failure of planned.repeat) {
    const why = repeatedInVain(failure, await repeat(at, failure, record));
    if (why === null) flakes.push(flakeOf(failure, at.now(), at.commit));
    else failed.push(`${failureLine(failure)} (repeated: ${why})`);
  }
  const recorded = recordFlakes(at, flakes);
  remarks.push(...recorded.remarks);
  failed.push(...recorded.failed);
  if (failed.length === 0 && isWhole) {
    const stressed = await stress(at, stressOf(record, changed));
    remarks.push(...stressed.remarks);
    failed.push(...stressed.failed);
  }
  return { failed, remarks, forgiven: flakes.length };
}

/** Alone, in one worker, one time after the other; then beside the files that ran with it. */
async function repeat(at: Surroundings, failure: Failure, record: RunRecord): Promise<Ran[]> {
  const { file, title } = failure;
  at.print(`\nRepeating ${nameOf(failure)}: ${TIMES_ALONE} times alone`);
  const alone = await at.run([file, '-t', exactly(title)], {
    TEST_AGAIN: String(TIMES_ALONE),
  });
  const neighbours = neighboursOf(failure, record);
  at.print(`\nRepeating ${nameOf(failure)}: beside ${neighbours.join(', ') || 'nothing'}`);
  const beside = await at.run([file, ...neighbours], { TEST_AGAIN: '1', TEST_WORKERS: BESIDE });
  return [alone, beside];
}

async function stress(at: Surroundings, planned: Stress): Promise<Omit<Result, 'forgiven'>> {
  const { files, alone, loaded, leftOut } = planned;
  const remarks = leftOut.map((file) => `Not stressed, for want of time: ${file}`);
  if (files.length === 0) return { failed: [], remarks };
  const what = `${alone} times alone, ${loaded} times with each core loaded: ${files.join(', ')}`;
  at.print(`\nStressing what the change edits, ${what}`);
  const runs = [await at.run(files, { TEST_AGAIN: String(alone) })];
  if (stressFailures({ ...planned, loaded: 0 }, runs).length === 0)
    runs.push(await withLoad(() => at.run(files, { TEST_AGAIN: String(loaded) })));
  else return { failed: stressFailures({ ...planned, loaded: 0 }, runs), remarks };
  return { failed: stressFailures(planned, runs), remarks: [...remarks, `Stressed ${what}`] };
}

/** Adds them to the list, and those that it holds already to the quarantine. */
function recordFlakes(at: Surroundings, flakes: readonly Flake[]): Omit<Result, 'forgiven'> {
  if (flakes.length === 0) return { failed: [], remarks: [] };
  const before = readText(at, FLAKY_FILE);
  const lines = flakes.map((flake) => `${JSON.stringify(flake)}\n`);
  writeFileSync(join(at.root, FLAKY_FILE), before + lines.join(''));
  const remarks = flakes.map(
    (flake) => `FLAKY ${nameOf(flake)}, seed ${flake.seed}, 1 of ${TIMES + 1}`,
  );
  const failed: string[] = [];
  const recorded = parseFlakes(before);
  for (const flake of flakes.filter((one) => isSecond(one, recorded, at.commitsSince))) {
    const text = readText(at, QUARANTINE_FILE);
    if (parseQuarantine(text).lines.length >= QUARANTINE_LINES) {
      failed.push(`${nameOf(flake)}: flaky again, and ${QUARANTINE_FILE} is full`);
      continue;
    }
    const why = flake.message.split('\n', 1)[0]?.slice(0, 100) || 'no message';
    const line = quarantineLine({ date: flake.date.slice(0, 10), test: nameOf(flake), why });
    writeFileSync(join(at.root, QUARANTINE_FILE), `${text}${line}\n`);
    remarks.push(`In quarantine for a week: ${nameOf(flake)}`);
  }
  const patch = at.toCommit([FLAKY_FILE, QUARANTINE_FILE]);
  if (patch !== '') remarks.push('To commit:', patch);
  return { failed, remarks };
}

/** The pattern of `-t` that this title alone fits. */
const exactly = (title: string): string =>
  `^${title.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)}$`;

function readText({ root }: Surroundings, file: string): string {
  const path = join(root, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}
