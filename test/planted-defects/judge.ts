/** What is read of the report of a run of tests (vitest's JSON). */
export type Report = {
  testResults: readonly {
    /** The file's absolute path. */
    name: string;
    /** Why the file did not load; empty: it did. */
    message?: string;
    assertionResults: readonly TestResult[];
  }[];
  /** The last that the run printed. */
  output?: string;
};
type TestResult = { fullName: string; status: string; failureMessages?: readonly string[] | null };

/** The title of the test that found a defect, or why none did. */
export type Verdict = { foundBy: string } | { missed: string };

/** How a test fails that has found something; other errors are of tests that did not get so far. */
const FOUND = [
  /^AssertionError/,
  /^(?:TestTimeout)?Error: Test timed out in/,
  /^Error: not within \d+ ms: /, // `eventually`
  /^Error: Property failed after .*^Got AssertionError/ms, // fast-check
];

/**
 * Judges a run with a defect. Only a test that ran to a failed expectation, or to a time limit of
 * what it waits for, has found it. Where a file did not load, or no test at all passes, the set-up
 * is broken.
 * @param files the test files that must have run, by the ends of their paths
 */
export function judge(report: Report, files: readonly string[]): Verdict {
  const tests = testsOf(report, files);
  if (typeof tests === 'string') return { missed: tests };
  const failed = tests.filter(({ status }) => status === 'failed');
  if (failed.length === 0) return { missed: `all of ${tests.length} tests pass` };
  if (tests.length > 1 && !tests.some(isPassed))
    return { missed: `no test passes: ${reasonOf(failed[0])}` };
  const finder = failed.find(hasFound);
  return finder === undefined
    ? { missed: `a test failed, but by another error: ${reasonOf(failed[0])}` }
    : { foundBy: finder.fullName };
}

/** Judges a run without a defect. @returns why the files do not all pass; null: they do */
export function failureOf(report: Report, files: readonly string[]): string | null {
  const tests = testsOf(report, files);
  if (typeof tests === 'string') return tests;
  const failed = tests.find(({ status }) => status === 'failed');
  if (failed !== undefined) return `${failed.fullName}: ${reasonOf(failed)}`;
  return tests.some(isPassed) ? null : 'all of its tests are left out';
}

/** The files' tests, or why there are none of a file. */
function testsOf({ testResults, output }: Report, files: readonly string[]): TestResult[] | string {
  if (files.length === 0) return 'there is no such test file';
  const tests: TestResult[] = [];
  for (const file of files) {
    const result = testResults.find(({ name }) => name.endsWith(`/${file}`));
    const own = result?.assertionResults ?? [];
    if (own.length === 0) return `${file} did not run: ${oneLine(result?.message ?? output ?? '')}`;
    tests.push(...own);
  }
  return tests;
}

const hasFound = ({ failureMessages }: TestResult): boolean =>
  FOUND.some((how) => how.test(failureMessages?.[0] ?? ''));
const isPassed = ({ status }: TestResult): boolean => status === 'passed';
const reasonOf = (test?: TestResult): string => oneLine(test?.failureMessages?.[0] ?? '');
const oneLine = (text: string): string => text.slice(0, 200).replaceAll(/\s+/g, ' ');
