import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { failed, file, ran } from '#test/support/gate/ran.fixture.ts';
import { parseFlakes, parseQuarantine, faultsOf } from '#test/support/gate/flaky.ts';
import { runGate, type Surroundings } from '#test/support/gate/run-gate.ts';
import type { Ran } from '#test/support/gate/rule.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { readText } from '#test/support/sources/source-files.ts';

const A = 'test/e2e/a.real.test.ts';
const B = 'test/e2e/b.real.test.ts';
const HEADER = '# date | file > title | why\n';

/** A gate over a script of vitest's runs; `runs` are the arguments and variables of each. */
async function gate(
  script: Ran[],
  {
    flaky = '',
    quarantine = HEADER,
    args = [],
    ...more
  }: Partial<Surroundings> & {
    flaky?: string;
    quarantine?: string;
    args?: string[];
  } = {},
) {
  await using folder = await scratchDir();
  mkdirSync(join(folder.path, 'test'));
  const path = (name: string) => join(folder.path, 'test', name);
  writeFileSync(path('flaky.jsonl'), flaky);
  writeFileSync(path('quarantine.txt'), quarantine);
  const lines: string[] = [];
  const runs: unknown[] = [];
  const isGreen = await runGate(
    {
      root: folder.path,
      run: async (given, env) => {
        runs.push([...given, env]);
        return script.shift() ?? ran([]);
      },
      changed: [],
      commit: 'abc1234',
      commitsSince: () => 100,
      toCommit: () => '',
      now: () => new Date('2026-11-28T12:00:00Z'),
      print: (line) => void lines.push(line),
      ...more,
    },
    ['real'],
    args,
  );
  return {
    isGreen,
    lines,
    runs,
    last: lines.at(-1),
    flakes: parseFlakes(readFileSync(path('flaky.jsonl'), 'utf8')),
    quarantine: readFileSync(path('quarantine.txt'), 'utf8'),
  };
}

const rounds = (count: number) => ran(Array.from({ length: count }, () => file(A)));
const flaked = () => [ran([failed(A), file(B)]), rounds(5), ran([file(A), file(B)])];

describe('the gate', () => {
  it('is green when all passes', async () => {
    const { isGreen, lines, runs } = await gate([ran([file(A), file(B)])]);
    expect(isGreen).toBe(true);
    expect(lines).toEqual(['', 'e2e 1 passed', '2 passed, 0 failed']);
    expect(runs).toEqual([[{ TEST_TIERS: 'real' }]]);
  });

  it('repeats a failed test five times alone and once beside what ran with it', async () => {
    const { runs } = await gate(flaked());
    expect(runs.slice(1)).toEqual([
      [A, '-t', '^group > 1$', { TEST_AGAIN: '5' }],
      [A, B, { TEST_AGAIN: '1', TEST_WORKERS: '2' }],
    ]);
  });

  it('counts a test that fails once as passed, and records it as flaky', async () => {
    const { isGreen, lines, last, flakes, quarantine } = await gate(flaked());
    expect(isGreen).toBe(true);
    expect(lines).toContain(`FLAKY ${A} > group > 1, seed 1, 1 of 7`);
    expect(last).toBe('2 passed, 0 failed');
    expect(flakes).toEqual([
      {
        date: '2026-11-28T12:00:00.000Z',
        commit: 'abc1234',
        file: A,
        title: 'group > 1',
        seed: 1,
        load: 1.5,
        seconds: 1,
        message: 'expected 1 to be 2\nmore',
        stack: 'at',
        output: 'log',
      },
    ]);
    expect(quarantine).toBe(HEADER);
  });

  it('is red when a repeat fails, and records nothing', async () => {
    const { isGreen, lines, last, flakes } = await gate([
      ran([failed(A), file(B)]),
      ran([file(A), file(A), failed(A), file(A), file(A)]),
      ran([file(A), file(B)]),
    ]);
    expect(isGreen).toBe(false);
    expect(lines).toContain(
      `FAILED ${A} > group > 1: expected 1 to be 2 (repeated: failed 2 of 7 times)`,
    );
    expect(last).toBe('1 passed, 1 failed');
    expect(flakes).toEqual([]);
  });

  it('repeats nothing in a run that is red at once', async () => {
    const given = ran([failed(A)], { crashes: ['provisioner: exit code 1'] });
    const { isGreen, runs, last } = await gate([given]);
    expect([isGreen, runs.length, last]).toEqual([false, 1, '0 passed, 2 failed']);
  });

  it('prints what has to be committed in CI', async () => {
    const { lines } = await gate(flaked(), { toCommit: (files) => `diff of ${files.join()}` });
    expect(lines).toContain('diff of test/flaky.jsonl,test/quarantine.txt');
  });
});

describe('a test that is flaky again', () => {
  const date = '2026-11-27T00:00:00.000Z';
  const before = `${JSON.stringify({ date, file: A, title: 'group > 1' })}\n`;
  const line = (name: string) => `2026-11-27 | test/e2e/${name}.real.test.ts > title | issue 7\n`;
  const four = `${HEADER}${['1', '2', '3', '4'].map(line).join('')}`;

  it('within 20 runs is put in quarantine', async () => {
    const { isGreen, flakes, quarantine } = await gate(flaked(), { flaky: before });
    expect(isGreen).toBe(true);
    expect(flakes).toHaveLength(2);
    expect(quarantine).toBe(`${HEADER}2026-11-28 | ${A} > group > 1 | expected 1 to be 2\n`);
  });

  it('later is recorded alone', async () => {
    const { quarantine } = await gate(flaked(), { flaky: before, commitsSince: () => 101 });
    expect(quarantine).toBe(HEADER);
  });

  it('fills the fifth line, and where that is taken the run is red', async () => {
    const fifth = await gate(flaked(), { flaky: before, quarantine: four });
    expect([fifth.isGreen, parseQuarantine(fifth.quarantine).lines.length]).toEqual([true, 5]);
    const sixth = await gate(flaked(), { flaky: before, quarantine: four + line('5') });
    expect([sixth.isGreen, sixth.last]).toEqual([false, '2 passed, 1 failed']);
    expect(sixth.quarantine).toBe(four + line('5'));
  });

  it('is reported while it is in quarantine, and counts neither as passed nor as failed', async () => {
    const quarantine = `2026-11-28 | ${A} > group > 1 | issue 7\n`;
    const { isGreen, lines, last, runs } = await gate([ran([failed(A), file(B)])], { quarantine });
    expect([isGreen, last, runs.length]).toEqual([true, '1 passed, 0 failed', 1]);
    expect(lines).toContain(`QUARANTINED ${A} > group > 1: expected 1 to be 2`);
  });
});

describe('the test files that a change edits', () => {
  it('are stressed: ten times alone, three times with each core loaded', async () => {
    const { isGreen, runs, lines } = await gate([ran([file(A), file(B)]), rounds(10), rounds(3)], {
      changed: [A],
    });
    expect(isGreen).toBe(true);
    expect(runs.slice(1)).toEqual([
      [A, { TEST_AGAIN: '10' }],
      [A, { TEST_AGAIN: '3' }],
    ]);
    expect(lines).toContain(`Stressed 10 times alone, 3 times with each core loaded: ${A}`);
  });

  it('make the run red when the stress finds a failure', async () => {
    const { isGreen, last } = await gate(
      [ran([file(A)]), rounds(10), ran([file(A), failed(A), file(A)])],
      { changed: [A] },
    );
    expect([isGreen, last]).toEqual([false, '1 passed, 1 failed']);
  });

  it('are not stressed in a run of named files, nor in a red one', async () => {
    const some = await gate([ran([file(A)])], { changed: [A], args: [A] });
    const red = await gate([ran([file(A)], { broken: ['no server'] })], { changed: [A] });
    expect([some.runs.length, red.runs.length]).toEqual([1, 1]);
  });
});

test('the lists of this checkout can be read, and the quarantine has at most five lines', () => {
  const flakes = parseFlakes(readText('test/flaky.jsonl'));
  expect(flakes.filter(({ file: path, title }) => !path || !title)).toEqual([]);
  expect(faultsOf(parseQuarantine(readText('test/quarantine.txt')))).toEqual([]);
});
