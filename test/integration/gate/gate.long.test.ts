import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runGate } from '#test/support/gate/run-gate.ts';
import { runVitest } from '#test/support/gate/vitest-child.ts';
import { scratchDir } from '#test/support/scratch.ts';

const TOP = fileURLToPath(new URL('../../..', import.meta.url));
const A = 'test/e2e/a.real.test.ts';
const B = 'test/e2e/b.real.test.ts';

/** The parts of test/vitest.config.ts that the gate relies on. */
const CONFIG = `
const named = process.argv.filter((argument) => /^test.*[.]test[.]ts$/.test(argument));
const rounds = Number(process.env.TEST_AGAIN ?? 0);
const project = (name, include, groupOrder, maxWorkers) => {
  const test = { name, include, pool: 'forks', isolate: false, maxWorkers };
  return { root: __dirname, test: { ...test, sequence: { groupOrder } } };
};
const round = (_, index) =>
  project('round ' + index, named, index, Number(process.env.TEST_WORKERS ?? 1));
module.exports = {
  root: __dirname,
  test: {
    reporters: [${JSON.stringify(join(TOP, 'test/support/summary.ts'))}],
    globalSetup: process.env.FIXTURE_SETUP ? [process.env.FIXTURE_SETUP] : [],
    projects:
      rounds > 0
        ? Array.from({ length: rounds }, round)
        : [project('real', ['test/**/*.real.test.ts'], 0, 2)],
  },
};
`;

/** A test file with a test of this title, which counts how often it runs, and these lines. */
const file = (title: string, lines = '', before = '') => `
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
const mark = (name) => appendFileSync(name, 'x');
const times = (name) => (existsSync(name) ? readFileSync(name, 'utf8').length : 0);
const marked = (name) => expect.poll(() => times(name), { timeout: 60_000 }).toBeGreaterThan(0);
describe('group', () => {
  ${before}
  it(${JSON.stringify(title)}, { timeout: 60_000 }, async () => {
    mark(import.meta.filename + '.ran');
    ${lines}
  });
});
`;

/** The gate over a project of these test files, with real runs of vitest. */
async function gate(
  files: Record<string, string>,
  { changed = [], env = {} }: { changed?: string[]; env?: Record<string, string> } = {},
) {
  await using folder = await scratchDir();
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  };
  symlinkSync(join(TOP, 'node_modules'), join(folder.path, 'node_modules'));
  write('vitest.config.cjs', CONFIG);
  write('package.json', '{ "type": "module" }');
  for (const [path, text] of Object.entries(files)) write(path, text);
  const lines: string[] = [];
  const command = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run'];
  const isGreen = await runGate(
    {
      root: folder.path,
      run: (args, more) =>
        runVitest([...command, '--config', 'vitest.config.cjs'], args, {
          root: folder.path,
          env: { ...env, ...more, CI: '' },
          stdio: 'ignore',
        }),
      changed,
      commit: 'abc1234',
      commitsSince: () => 0,
      toCommit: () => '',
      now: () => new Date(),
      print: (line) => void lines.push(line),
    },
    ['real'],
    [],
  );
  const times = (path: string): number => {
    const marks = join(folder.path, `${path}.ran`);
    return existsSync(marks) ? readFileSync(marks, 'utf8').length : 0;
  };
  return {
    isGreen,
    last: lines.at(-1),
    output: lines.join('\n'),
    ran: { a: times(A), b: times(B) },
  };
}

const ALWAYS = `throw new Error('planted');`;

describe('the gate over real runs of vitest', () => {
  it('forgives a test that fails once: five repeats alone, one beside what ran with it', async () => {
    const { isGreen, last, output, ran } = await gate({
      [A]: file('x (1.*)', `await marked('b'); mark('a'); expect(times('a')).not.toBe(1);`),
      [B]: file('y', `mark('b'); await marked('a');`),
    });
    expect([isGreen, last]).toEqual([true, '2 passed, 0 failed']);
    expect(output).toContain(`FLAKY ${A} > group > x (1.*), seed 1, 1 of 7`);
    expect(output).toContain(`beside ${B}`);
    expect(ran).toEqual({ a: 7, b: 2 });
  });

  it.each<[string, string, Record<string, string>, RegExp]>([
    ['a set-up fails', file('x', '', `beforeAll(() => { ${ALWAYS} });`), {}, /group: planted$/m],
    ['a file does not load', `import './none.ts';`, {}, /Cannot find module/],
    [
      'an error is not caught',
      file('x', `setTimeout(() => { ${ALWAYS} });`),
      {},
      /\(outside of tests\): planted$/m,
    ],
    [
      'the global set-up fails',
      file('x'),
      { FIXTURE_SETUP: './none.ts' },
      /^FAILED no test ran, vitest ended with 1$/m,
    ],
    [
      'a service crashed',
      file('x', `appendFileSync(process.env.TEST_CRASHES, 'exit 1');`),
      {},
      /^FAILED a service crashed: exit 1$/m,
    ],
    [
      'a worker is killed',
      file('x', `process.kill(process.pid, 'SIGKILL');`),
      {},
      /outside of tests.*Worker/,
    ],
    [
      'three tests fail',
      file('x1', `mark('a'); ${ALWAYS}`, `it('x2', () => { ${ALWAYS} });`),
      {},
      /x1: planted \(not repeated: 3 tests failed\)$/m,
    ],
  ])('is red at once when %s', async (_, text, env, why) => {
    const { isGreen, last, output } = await gate({ [A]: text, [B]: file('y', ALWAYS) }, { env });
    expect(isGreen).toBe(false);
    expect(output).toMatch(why);
    expect(output).not.toContain('Repeating');
    expect(last).toMatch(/^\d+ passed, [1-9] failed$/);
  });

  it('stresses the files that the change edits, and never forgives them', async () => {
    const text = file('x', `mark('a'); expect(times('a')).not.toBe(12);`);
    const stressed = await gate({ [A]: text }, { changed: [A] });
    expect([stressed.isGreen, stressed.last, stressed.ran.a]).toEqual([
      false,
      '1 passed, 1 failed',
      14,
    ]);
    expect(stressed.output).toMatch(/^FAILED .* \(1 of 13 times\)$/m);
    const failing = await gate({ [A]: file('x', ALWAYS) }, { changed: [A] });
    expect([failing.isGreen, failing.ran.a]).toEqual([false, 1]);
  });
});
