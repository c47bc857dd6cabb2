import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { Defect } from './defects.ts';
import type { Report } from './judge.ts';
import { planted } from './plant.ts';

/** What is installed or built: the copy has links to it. */
const LINKED = ['node_modules', '.tools'];
/** What tests do not read. */
const LEFT_OUT = ['.git', '.data', 'dist', 'coverage'];

/** A run that takes longer hangs, as in a loop without end. */
const RUN_MS = 15 * 60_000;
/** Characters of a run's output that are kept. */
const OUTPUT_MAX = 2_000;

/** A copy of the checkout, in which defects are planted one after the other. */
export type CheckoutCopy = {
  /** Runs test files. @param testMs the time limit of a test */
  runTests(files: readonly string[], testMs: number): Promise<Report>;
  /** The same with the defect, which is removed afterwards. */
  runWith(defect: Defect, files: readonly string[], testMs: number): Promise<Report>;
};

/** Ends the group of a run: with a defect, tests may leave servers behind. */
function endAll(run: ChildProcess | null): void {
  if (run?.pid === undefined) return;
  try {
    process.kill(-run.pid, 'SIGKILL');
  } catch (error) {
    // All of them have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Copies the checkout into a temporary folder, which is removed when this process ends. */
export function copyCheckout(root: string): CheckoutCopy {
  const folder = mkdtempSync(join(tmpdir(), 'planted-'));
  const copy = join(folder, 'checkout');
  const reportFile = join(folder, 'report.json');
  let running: ChildProcess | null = null;
  process.once('exit', () => {
    endAll(running);
    rmSync(folder, { recursive: true, force: true });
  });
  const isCopied = (path: string) => ![...LINKED, ...LEFT_OUT].includes(relative(root, path));
  cpSync(root, copy, { recursive: true, filter: isCopied });
  for (const name of LINKED) symlinkSync(join(root, name), join(copy, name));

  async function runTests(files: readonly string[], testMs: number): Promise<Report> {
    rmSync(reportFile, { force: true });
    const args = ['run', '--config', 'test/vitest.planted.config.ts', `--testTimeout=${testMs}`];
    const report = ['--reporter=json', `--outputFile=${reportFile}`];
    const child = spawn(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', ...args, ...report, ...files],
      {
        cwd: copy,
        env: { ...process.env, TMPDIR: folder },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: RUN_MS,
        detached: true,
      },
    );
    running = child;
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data) => (output = `${output}${data}`.slice(-OUTPUT_MAX)));
    await new Promise((resolve) => child.once('exit', resolve));
    endAll(child);
    running = null;
    try {
      return { ...(JSON.parse(readFileSync(reportFile, 'utf8')) as Report), output };
    } catch {
      return { testResults: [], output };
    }
  }

  return {
    runTests,
    async runWith(defect, files, testMs) {
      const path = join(copy, defect.file);
      const source = readFileSync(path, 'utf8');
      writeFileSync(path, planted(source, defect));
      try {
        return await runTests(files, testMs);
      } finally {
        writeFileSync(path, source);
      }
    },
  };
}
