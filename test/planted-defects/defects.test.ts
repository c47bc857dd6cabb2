import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import { bugs } from '#test/simulation/bugs.ts';
import { defects, type Defect } from './defects.ts';
import { failureOf, judge, type Report } from './judge.ts';
import { planted } from './plant.ts';
import { testFilesOf } from './test-files.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const passed = { fullName: 'a passes', status: 'passed' };
const failedBy = (message: string) => {
  return { fullName: 'b finds it', status: 'failed', failureMessages: [message] };
};
const expectation = failedBy('AssertionError: expected 1 to be 2');
/** The report of a run of `test/a.test.ts`. */
function reportOf(...assertionResults: Report['testResults'][0]['assertionResults']): Report {
  return { testResults: [{ name: '/copy/test/a.test.ts', message: '', assertionResults }] };
}
const files = ['test/a.test.ts'];

describe('the table of planted defects', () => {
  it('has thirty with those of the simulation, each under its own name', () => {
    const names = [...defects, ...bugs].map(({ name }) => name);
    expect(names.length).toBe(30);
    expect(new Set(names).size).toBe(30);
    expect(new Set(defects.map(({ part }) => part)).size).toBe(defects.length);
  });

  for (const defect of defects)
    it(`can plant that ${defect.name}`, () => {
      const source = readFileSync(join(ROOT, defect.file), 'utf8');
      expect(planted(source, defect)).not.toBe(source);
      for (const one of defect.tests) expect([one, testFilesOf(ROOT, one)]).not.toEqual([one, []]);
      expect(defect.tests).not.toEqual([]);
    });
});

test('a defect whose text is not in its file, or twice, cannot be planted', () => {
  const [first] = defects as [Defect];
  const defect = { ...first, from: 'return $1;', to: 'return $&;' };
  expect(planted('a; return $1; b', defect)).toBe('a; return $&; b');
  expect(() => planted('a; b', defect)).toThrow('0 times');
  expect(() => planted('return $1; return $1;', defect)).toThrow('2 times');
});

describe('a defect is found', () => {
  it.each([
    'AssertionError: expected 1 to be 2\n    at …',
    'TestTimeoutError: Test timed out in 30000ms.',
    'Error: not within 120000 ms: the session is active',
    'Error: Property failed after 1 tests\n{ seed: 1 }\n\nGot AssertionError: expected 1 to be 2',
  ])('by a test that fails with %j', (message) => {
    expect(judge(reportOf(passed, failedBy(message)), files)).toEqual({ foundBy: 'b finds it' });
  });

  it('by the only test of a file', () => {
    expect(judge(reportOf(expectation), files)).toEqual({ foundBy: 'b finds it' });
  });
});

describe('a defect is missed', () => {
  const unloaded = reportOf();
  unloaded.testResults[0]!.message = 'SyntaxError: Unexpected token';
  it.each<[string, Report, string]>([
    ['where all tests pass', reportOf(passed, passed), 'all of 2 tests pass'],
    ['where the file did not load', unloaded, 'Unexpected token'],
    ['where there is no report', { testResults: [], output: 'no config' }, 'no config'],
    ['where no test passes', reportOf(expectation, expectation), 'no test passes'],
    [
      'where tests fail by an error before they expect anything',
      reportOf(passed, failedBy("TypeError: undefined has no 'x'")),
      'another error',
    ],
  ])('%s', (_, report, why) => {
    expect(judge(report, files)).toEqual({ missed: expect.stringContaining(why) });
  });

  it('where one of two files did not run', () => {
    const both = [...files, 'test/b.test.ts'];
    expect(judge(reportOf(passed, expectation), both)).toEqual({
      missed: expect.stringContaining('test/b.test.ts did not run'),
    });
  });
});

test('without a defect all tests must pass, and at least one must run', () => {
  expect(failureOf(reportOf(passed, passed), files)).toBe(null);
  expect(failureOf(reportOf(passed, expectation), files)).toContain('b finds it');
  expect(failureOf(reportOf({ ...passed, status: 'skipped' }), files)).toContain('left out');
  expect(failureOf(reportOf(), files)).toContain('did not run');
  expect(failureOf(reportOf(passed), [])).toContain('no such test file');
});
