import { globSync, writeFileSync, writeSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { Reporter, SerializedError, TestModule, Vitest } from 'vitest/node';
import { COMMANDS, tierNames, tierOf, tiersOf } from '#test/tiers.ts';
import { DURATIONS_FILE, readDurations } from './gate/durations.ts';
import {
  brokenOf,
  failedTests,
  failureLine,
  fileOf,
  OUTCOMES,
  Outcomes,
  type RunRecord,
} from './gate/outcomes.ts';

type Tally = { passed: number; failed: number; skipped: number; seconds: number };

/**
 * After vitest's own report: a line for each folder under test/, the slowest files, what the tiers
 * that did not run hold, a line for each test that failed, then the last line of all,
 * `N passed, N failed`. In a run of test/gate.ts a record for it takes the place of all that. With
 * `UPDATE_DURATIONS=1` the seconds of each file are recorded.
 * A file that does not load, a group whose setup fails and an error outside of the tests count as
 * failed; a run in which nothing passed or failed fails too, except where this machine cannot have
 * a cluster: the tests on it are left out then, and a line says so.
 */
export default class Summary extends Outcomes implements Reporter {
  private root = process.cwd();

  onInit({ config }: Vitest): void {
    this.root = config.root;
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const isRepeat = process.env['TEST_AGAIN'] !== undefined;
    if (process.env['UPDATE_DURATIONS'] === '1' && !isRepeat) recordDurations(this.root, modules);
    const tallies = tallyByFolder(modules);
    const leftOut = [withoutDocker(modules), ...withoutPrograms(modules)].filter(
      (line) => line !== null,
    );
    const broken = [
      ...modules.flatMap(brokenOf),
      ...errors.map(({ message }) => `(outside of tests): ${message.split('\n', 1)[0]}`),
      ...(process.env['CI'] === 'true' ? leftOut : []),
    ];
    const summary = [...tallies].map(([folder, tally]) => lineOf(folder, tally));
    if (modules.length > SLOWEST) summary.push(slowestOf(modules), ...elsewhere(this.root));
    summary.push(...leftOut, ...withoutS3(modules));
    const noCluster = process.env['TEST_KUBERNETES_LEFT_OUT'];
    if (noCluster !== undefined)
      summary.push(
        `Left out, since ${noCluster}: browsers in Pods and the Helm chart, on a cluster`,
      );
    const files = this.files(modules);
    const outcomes = process.env[OUTCOMES];
    if (outcomes) {
      const record: RunRecord = { files, broken, summary };
      writeFileSync(outcomes, JSON.stringify(record));
      return;
    }
    const failed = [...broken, ...failedTests(files).map(failureLine)];
    const passed = total([...tallies.values()]).passed;
    const lines = [...summary, ...failed.map((line) => `FAILED ${line}`)];
    lines.push(`${passed} passed, ${failed.length} failed`);
    // At the very end, so that no output follows the last line.
    process.once('exit', () => {
      const isEmpty = passed === 0 && failed.length === 0 && noCluster === undefined;
      if (failed.length > 0 || isEmpty) process.exitCode ||= 1;
      writeSync(1, `\n${lines.join('\n')}\n`);
    });
  }
}

/** Files that the summary names as those that took longest. */
const SLOWEST = 10;

/** What to look at first when a run takes longer than it may. */
function slowestOf(modules: readonly TestModule[]): string {
  const files = modules.map((module) => ({
    file: fileOf(module),
    seconds: module.diagnostic().duration / 1000,
  }));
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  const lines = slowest.map(({ file, seconds }) => `  ${file} ${seconds.toFixed(0)} s`);
  return ['The slowest files:', ...lines].join('\n');
}

/** The tiers that this run is not about, with the number of their files and their commands. */
function elsewhere(root: string): string[] {
  const ran = tiersOf(process.env['TEST_TIERS']);
  const files = globSync('test/**/*.test.ts', { cwd: root });
  return tierNames
    .filter((tier) => !ran.includes(tier))
    .map((tier) => {
      const count = files.filter((file) => tierOf(file) === tier).length;
      return `Not in this run: ${count} files of \`${COMMANDS[tier]}\``;
    });
}

/** Replaces the times of the files that ran; those of files that are gone are dropped. */
function recordDurations(root: string, modules: readonly TestModule[]): void {
  const files = globSync('test/**/*.test.ts', { cwd: root });
  const recorded = modules.map((module): [string, number] => [
    fileOf(module),
    Math.round(module.diagnostic().duration / 1000),
  ]);
  const all = { ...readDurations(root), ...Object.fromEntries(recorded) };
  const kept = Object.entries(all)
    .filter(([file, seconds]) => files.includes(file) && seconds > 0)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(
    join(root, DURATIONS_FILE),
    `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`,
  );
}

/** The test files that a run without a Docker engine did not cover; null if it covered all. */
function withoutDocker(modules: readonly TestModule[]): string | null {
  if (process.env['TEST_DOCKER'] !== 'no') return null;
  const missed = modules.filter(
    ({ moduleId, project }) =>
      project.name === 'containers' || /docker|\/browsers\.real\.test/.test(moduleId),
  );
  if (missed.length === 0) return null;
  const names = missed.map((module) => fileOf(module));
  const list = names.join(', ');
  const what = 'Docker browsers and servers in containers';
  return `Left out, since no Docker engine answers (DOCKER_HOST): ${what}, in ${list}`;
}

/** Programs of Debian's, by the end of the file that needs each. */
const NEEDED = { 'alert-rules.long.test.ts': 'promtool', 'proxy.long.test.ts': 'nginx' };

/** A line for each test file that left tests out because there is no such program. */
function withoutPrograms(modules: readonly TestModule[]): string[] {
  return Object.entries(NEEDED).flatMap(([name, program]) => {
    const module = modules.find(({ moduleId }) => moduleId.endsWith(`/${name}`));
    const tests = [...(module?.children.allTests() ?? [])];
    const isLeftOut = tests.some((test) => test.result().state === 'skipped');
    if (module === undefined || !isLeftOut) return [];
    const variable = program.toUpperCase();
    const file = relative(module.project.config.root, module.moduleId);
    const why = `${program} is missing and cannot be fetched (${variable})`;
    return `Left out, since ${why}: checks in ${file}`;
  });
}

/** The test files that a run without an S3 server did not cover in full, in one line. */
function withoutS3(modules: readonly TestModule[]): string[] {
  if (process.env['TEST_S3_SERVER'] !== 'none') return [];
  const missed = modules.filter(({ moduleId }) =>
    moduleId.endsWith('archive-files-s3.long.test.ts'),
  );
  const names = missed.map((module) => fileOf(module));
  if (names.length === 0) return [];
  return [`Left out, since Go is missing to build an S3 server: S3, in ${names.join(', ')}`];
}

function tallyByFolder(modules: readonly TestModule[]): Map<string, Tally> {
  const tiers = new Map<string, Tally>();
  for (const module of modules) {
    const tests = [...module.children.allTests()];
    const count = (state: string): number =>
      tests.filter((test) => test.result().state === state).length;
    add(tiers, folderOf(module), {
      passed: count('passed'),
      failed: count('failed') + brokenOf(module).length,
      skipped: count('skipped') + count('pending'),
      seconds: module.diagnostic().duration / 1000,
    });
  }
  return new Map([...tiers].toSorted(([a], [b]) => a.localeCompare(b)));
}

/** `test/faults/kill-nats.test.ts` is of the folder faults, `test/tidy.test.ts` counts as tidy. */
function folderOf(module: TestModule): string {
  const [top = ''] = relative(`${module.project.config.root}/test`, module.moduleId).split(sep);
  return top.replace(/\.test\.ts$/, '');
}

function add(tiers: Map<string, Tally>, tier: string, more: Partial<Tally>): void {
  const none = { passed: 0, failed: 0, skipped: 0, seconds: 0 };
  tiers.set(tier, total([tiers.get(tier) ?? none, { ...none, ...more }]));
}

function total(tallies: readonly Tally[]): Tally {
  const sum = (of: keyof Tally): number => tallies.reduce((all, tally) => all + tally[of], 0);
  return {
    passed: sum('passed'),
    failed: sum('failed'),
    skipped: sum('skipped'),
    seconds: sum('seconds'),
  };
}

function lineOf(tier: string, { passed, failed, skipped, seconds }: Tally): string {
  const left = skipped > 0 ? `, ${skipped} skipped` : '';
  return `${tier.padEnd(14)} ${passed} passed, ${failed} failed${left}, ${seconds.toFixed(1)} s`;
}
