import { tierOf } from '#test/tiers.ts';
import type { FileOutcome, RunRecord, TestOutcome } from './outcomes.ts';
import type { Ran } from './rule.ts';

type Given = { states?: TestOutcome['state'][]; from?: number; to?: number };

/** The outcome of a file, by default of a single test that passed; its tests are named 1, 2, … */
export function file(path: string, given: Given = {}): FileOutcome {
  const { states = ['passed'], from = 0, to = 1000 } = given;
  const tests = states.map((state, index): TestOutcome => ({
    title: `group > ${index + 1}`,
    state,
    startedAt: from,
    endedAt: to,
    failure:
      state === 'failed'
        ? { message: 'expected 1 to be 2\nmore', stack: 'at', load: 1.5, output: 'log' }
        : null,
  }));
  return { file: path, project: tierOf(path), startedAt: from, endedAt: to, tests };
}

export const failed = (path: string, more: Given = {}) =>
  file(path, { states: ['failed'], ...more });

/** A run of vitest; its exit code is that of what failed. */
export function ran(files: FileOutcome[], more: Partial<Ran> & { broken?: string[] } = {}): Ran {
  const { broken = [], ...others } = more;
  const record: RunRecord = { files, broken, summary: ['e2e 1 passed'] };
  const hasFailed = files.some(({ tests }) => tests.some(({ state }) => state === 'failed'));
  return { record, code: hasFailed || broken.length > 0 ? 1 : 0, crashes: [], ...others };
}
