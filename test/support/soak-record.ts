import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const FILE = '.tools/soak.md';
const HEAD = `# Last results of the soak

\`npm run soak\` writes this file: a row for each test that has run, rows of other files stay.
The load is the machine's over the minute before the start.

| file | test | result | took | date | machine | measured |
|---|---|---|---|---|---|---|
`;

/** Records the result of each test in `.tools/soak.md`, with what the test has annotated. */
export default class SoakRecord implements Reporter {
  private readonly machine = [
    `${availableParallelism()} cores`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `load ${loadavg()[0]?.toFixed(1)}`,
  ].join(', ');

  onTestRunEnd(modules: readonly TestModule[]): void {
    const root = modules[0]?.project.config.root ?? process.cwd();
    const path = join(root, FILE);
    const rows = new Map(existsSync(path) ? rowsOf(readFileSync(path, 'utf8')) : []);
    for (const module of modules) {
      const file = relative(join(root, 'test'), module.moduleId);
      const tests = [...module.children.allTests()].filter(hasRun);
      // A test that was renamed or removed leaves no row behind.
      if (module.state() !== 'skipped' && tests.length === [...module.children.allTests()].length)
        for (const key of rows.keys()) if (key.startsWith(`| ${file} |`)) rows.delete(key);
      for (const test of tests) rows.set(...rowOf(file, test, this.machine));
    }
    const lines = [...rows].toSorted(([a], [b]) => a.localeCompare(b));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${HEAD}${lines.map((row) => row.join('')).join('\n')}\n`);
  }
}

function hasRun(test: TestCase): boolean {
  return ['passed', 'failed'].includes(test.result().state);
}

/** The row's first two cells, by which a later result replaces it, and the others. */
type Row = [key: string, rest: string];

function rowOf(file: string, test: TestCase, machine: string): Row {
  const seconds = Math.round((test.diagnostic()?.duration ?? 0) / 1000);
  const took = `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const date = new Date().toISOString().slice(0, 10);
  const measured = test.annotations().map(({ message }) => cell(message));
  const rest = [test.result().state, took, date, machine, measured.join('; ')];
  return [`| ${file} | ${cell(test.fullName)} |`, ` ${rest.join(' | ')} |`];
}

function rowsOf(text: string): Row[] {
  return text.split('\n').flatMap((line): Row[] => {
    const [, key, rest] = /^(\| \S+\.test\.ts \| [^|]+ \|)(.+)$/.exec(line) ?? [];
    return key === undefined || rest === undefined ? [] : [[key, rest]];
  });
}

/** Text that stays within its cell. */
function cell(text: string): string {
  return text.replaceAll('|', '/').replaceAll(/\s+/g, ' ').trim();
}
