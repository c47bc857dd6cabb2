import { homedir, loadavg } from 'node:os';
import { relative } from 'node:path';
import type { UserConsoleLog } from 'vitest';
import type { TestCase, TestModule } from 'vitest/node';

/** The variable that names the file to which a run of vitest writes its {@link RunRecord}. */
export const OUTCOMES = 'TEST_OUTCOMES';

/** The variable that names the file to which tests add a line for each crash of a service. */
export const CRASHES = 'TEST_CRASHES';

/** What a run of vitest leaves behind for the rule for repeats. */
export type RunRecord = {
  files: FileOutcome[];
  /** A line for each failure that is no test's: set-ups, files that do not load, other errors. */
  broken: string[];
  /** The lines of the summary, without those of the failures and without the last one. */
  summary: string[];
};

/** Times are in milliseconds since 1970. */
export type FileOutcome = {
  /** Its path from the top of the project. */
  file: string;
  project: string;
  startedAt: number;
  endedAt: number;
  tests: TestOutcome[];
};

export type TestOutcome = {
  /** With the titles of its groups, ` > ` between them, as `-t` sees it. */
  title: string;
  state: 'passed' | 'failed' | 'skipped' | 'pending';
  startedAt: number;
  endedAt: number;
  failure: { message: string; stack: string; load: number; output: string } | null;
};

/** Characters of a test's own output that are kept: its end tells how it failed. */
const OUTPUT_MAX = 4000;
const STACK_MAX = 1500;

/** Collects, as a part of a reporter, what vitest tells only while it runs. */
export class Outcomes {
  private readonly startedAt = new Map<string, number>();
  private readonly endedAt = new Map<string, number>();
  private readonly load = new Map<string, number>();
  private readonly output = new Map<string, string>();

  onTestModuleStart({ id }: TestModule): void {
    this.startedAt.set(id, Date.now());
  }

  onTestModuleEnd({ id }: TestModule): void {
    this.endedAt.set(id, Date.now());
  }

  onTestCaseResult(test: TestCase): void {
    if (test.result().state === 'failed') this.load.set(test.id, loadavg()[0] ?? 0);
  }

  onUserConsoleLog({ taskId = '', content }: UserConsoleLog): void {
    const before = this.output.get(taskId) ?? '';
    this.output.set(taskId, `${before}${content}`.slice(-OUTPUT_MAX));
  }

  files(modules: readonly TestModule[]): FileOutcome[] {
    return modules.map((module) => ({
      file: fileOf(module),
      project: module.project.name,
      startedAt: this.startedAt.get(module.id) ?? 0,
      endedAt: this.endedAt.get(module.id) ?? Date.now(),
      tests: [...module.children.allTests()].map((test) => this.outcomeOf(test)),
    }));
  }

  private outcomeOf(test: TestCase): TestOutcome {
    const { state, errors = [] } = test.result();
    const { startTime = 0, duration = 0 } = test.diagnostic() ?? {};
    const { root } = test.project.config;
    const output = this.output.get(test.id) ?? this.output.get(test.module.id) ?? '';
    const failure = {
      message: anywhere(errors.map(({ message }) => message).join('\n'), root),
      stack: anywhere(ownFrames(errors[0]?.stack ?? ''), root),
      load: this.load.get(test.id) ?? 0,
      output: anywhere(output, root),
    };
    return {
      title: test.fullName,
      state,
      startedAt: startTime,
      endedAt: startTime + duration,
      failure: state === 'failed' ? failure : null,
    };
  }
}

/** A text without the paths of this machine: what is recorded of a failure is committed. */
const anywhere = (text: string, root: string): string =>
  text.replaceAll(`${root.replace(/\/$/, '')}/`, '').replaceAll(homedir(), '~');

const ownFrames = (stack: string): string =>
  stack
    .split('\n')
    .filter((line) => !line.includes('node_modules') && !line.includes('<anonymous>'))
    .join('\n')
    .slice(0, STACK_MAX);

/** A line for each failure of a file that is no test's: it does not load, or a group's set-up. */
export function brokenOf(module: TestModule): string[] {
  const file = fileOf(module);
  const suites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
  return [
    ...module.errors().map(({ message }) => `${file}: ${firstLine(message)}`),
    ...suites.map((suite) => {
      const why = suite.errors().map(({ message }) => firstLine(message));
      return `${file} > ${suite.fullName}: ${why.join('; ')}`;
    }),
  ];
}

export const fileOf = (module: TestModule): string =>
  relative(module.project.config.root, module.moduleId);

const firstLine = (text: string): string => text.split('\n', 1)[0]?.slice(0, 300) ?? '';

/**
 * Whether a file ran as in `npm run test:real`: with the nightly tests the same file may also run
 * on other servers.
 */
export const isOfReal = ({ project }: Pick<FileOutcome, 'project'>): boolean =>
  project === 'real' || project === 'quiet';

/** A failed test with what it left behind. */
export type Failure = Omit<TestOutcome, 'state' | 'failure'> &
  NonNullable<TestOutcome['failure']> &
  Pick<FileOutcome, 'file' | 'project'>;

export function failedTests(files: readonly FileOutcome[]): Failure[] {
  return files.flatMap(({ file, project, tests }) =>
    tests.flatMap(({ title, startedAt, endedAt, failure }) =>
      failure === null ? [] : [{ file, project, title, startedAt, endedAt, ...failure }],
    ),
  );
}

/** `test/faults/kill-nats.test.ts > the log > comes back: what went wrong`. */
export function failureLine(failure: Failure): string {
  return `${nameOf(failure)}: ${firstLine(failure.message)}`;
}

/** A test as lists name it: `test/faults/kill-nats.test.ts > the log > comes back`. */
export const nameOf = ({ file, title }: Pick<Failure, 'file' | 'title'>): string =>
  `${file} > ${title}`;
