import { describe, expect, it } from 'vitest';
import { parseQuarantine } from '#test/support/gate/flaky.ts';
import { failed, file, ran } from '#test/support/gate/ran.fixture.ts';
import { neighboursOf, plan, repeatedInVain, type Ran } from '#test/support/gate/rule.ts';
import { failedTests } from '#test/support/gate/outcomes.ts';

const START = 'test/e2e/start.real.test.ts';
const QUEUE = 'test/e2e/api/queue.real.test.ts';
const LEASES = 'test/contract/messaging/leases.quiet.test.ts';
const at = new Date('2026-11-28T12:00:00Z');

type More = { changed?: string[]; quarantine?: string; tiers?: ('real' | 'nightly')[] };

function planned(given: Ran, { changed = [], quarantine = '', tiers = ['real'] }: More = {}) {
  return plan(given, { tiers, changed, quarantine: parseQuarantine(quarantine), at });
}

const names = (result: ReturnType<typeof plan>) => ({
  ...result,
  repeat: result.repeat.map((failure) => failure.file),
  quarantined: result.quarantined.map((failure) => failure.file),
});

const green = { failed: [], repeat: [], quarantined: [] };

describe('a run', () => {
  it('in which nothing failed is green', () => {
    expect(names(planned(ran([file(START)])))).toEqual(green);
  });

  it('with two failed tests repeats both', () => {
    const given = ran([failed(START), failed(LEASES), file(QUEUE)]);
    expect(names(planned(given))).toEqual({ ...green, repeat: [START, LEASES] });
  });

  it('with three failed tests is red', () => {
    const given = ran([failed(START), failed(LEASES), failed(QUEUE)]);
    expect(planned(given).repeat).toEqual([]);
    expect(planned(given).failed).toEqual(
      [START, LEASES, QUEUE].map(
        (test) => `${test} > group > 1: expected 1 to be 2 (not repeated: 3 tests failed)`,
      ),
    );
  });

  it.each([
    ['a set-up failed', { broken: [`${QUEUE} > group: no server`] }, `${QUEUE} > group: no server`],
    ['a service crashed', { crashes: ['exit code 1'] }, 'a service crashed: exit code 1'],
    ['vitest left no record', { record: null, code: 137 }, 'vitest ended with 137'],
  ])('in which %s is red at once', (_, more, line) => {
    const { failed: lines, repeat } = planned(ran([failed(START)], more));
    expect(lines[0]).toContain(line);
    expect(repeat).toEqual([]);
  });

  it('in which vitest fails without a failed test is red', () => {
    expect(planned(ran([file(START)], { code: 3 })).failed).toEqual([
      'vitest ended with 3, though no test failed',
    ]);
  });

  it('in which no test ran is red', () => {
    const given = ran([file(START, { states: ['skipped'] })]);
    expect(planned(given).failed).toEqual(['no test ran, vitest ended with 0']);
  });

  it.each(['test/e2e/start.test.ts', 'test/e2e/start.long.test.ts', 'test/simulation/a.test.ts'])(
    'in which %s failed, of another tier, is red',
    (path) => {
      const { failed: lines, repeat } = planned(ran([failed(path)]));
      expect(lines).toEqual([expect.stringContaining('it is not of `npm run test:real`')]);
      expect(repeat).toEqual([]);
    },
  );

  it('in which a test failed on other servers, as at night, is red', () => {
    const { failed: lines } = planned(ran([{ ...failed(LEASES), project: 'containers' }]));
    expect(lines).toEqual([expect.stringContaining('it is not of `npm run test:real`')]);
  });

  it('in which a test failed that the change touches is red', () => {
    const { failed: lines } = planned(ran([failed(LEASES)]), {
      changed: ['src/kernel/messaging/a.ts'],
    });
    expect(lines).toEqual([
      expect.stringContaining('the change touches it: src/kernel/messaging/a.ts'),
    ]);
  });
});

describe('a test in quarantine', () => {
  const line = (date: string, test = START) => `${date} | ${test} > group > 1 | issue 7\n`;

  it('is reported when it fails, and neither blocks nor counts', () => {
    const given = ran([failed(START), failed(LEASES), failed(QUEUE)]);
    expect(names(planned(given, { quarantine: line('2026-11-22') }))).toEqual({
      failed: [],
      repeat: [LEASES, QUEUE],
      quarantined: [START],
    });
  });

  it.each([
    ['after seven days', { quarantine: line('2026-11-21') }, 'in quarantine for more than 7 days'],
    [
      'in a run with the nightly tests, which repeats it',
      { quarantine: line('2026-11-22'), tiers: ['real' as const, 'nightly' as const] },
      null,
    ],
    ['when the change touches it', { quarantine: line('2026-11-22'), changed: [START] }, 'touches'],
  ])('blocks again %s', (_, more, why) => {
    const { failed: lines, repeat, quarantined } = planned(ran([failed(START)]), more);
    expect(quarantined).toEqual([]);
    expect(lines).toEqual(why === null ? [] : [expect.stringContaining(why)]);
    expect(repeat).toHaveLength(why === null ? 1 : 0);
  });

  it('is one of five: a sixth line makes each run red, and so does one that says nothing', () => {
    const lines = [1, 2, 3, 4, 5].map((day) => line(`2026-11-2${day}`));
    const five = `# remark\n${lines.join('')}`;
    expect(planned(ran([file(START)]), { quarantine: five }).failed).toEqual([]);
    const six = planned(ran([file(START)]), { quarantine: five + line('2026-11-26') });
    expect(six.failed).toEqual(['test/quarantine.txt: 6 lines, of which 5 are allowed']);
    const unread = planned(ran([file(START)]), { quarantine: `${START} > group > 1\n` });
    expect(unread.failed).toEqual([expect.stringContaining('not readable')]);
  });
});

describe('repeats of a failed test', () => {
  const [failure] = failedTests([failed(START)]);
  if (failure === undefined) throw new Error('no failure was built');
  const alone = (states: ('passed' | 'failed')[]) =>
    ran(states.map((state) => file(START, { states: [state] })));
  const passed = alone(['passed', 'passed', 'passed', 'passed', 'passed']);
  const beside = ran([file(START), failed(QUEUE)]);

  it('excuse it when all six pass', () => {
    expect(repeatedInVain(failure, [passed, beside])).toBeNull();
  });

  it.each([
    ['one fails', [alone(['passed', 'failed', 'passed', 'passed', 'passed']), beside], '2 of 7'],
    ['it fails beside its neighbours', [passed, ran([failed(START)])], '2 of 7'],
    ['one did not run', [alone(['passed', 'passed']), beside], 'ran 3 of the 6'],
    ['a service crashed', [passed, ran([file(START)], { crashes: ['exit 1'] })], 'exit 1'],
    ['vitest left no record', [passed, ran([], { record: null })], 'before its last report'],
  ])('do not excuse it when %s', (_, repeats, why) => {
    expect(repeatedInVain(failure, repeats)).toContain(why);
  });

  it('have the files beside it that ran at the same time', () => {
    const { record } = ran([
      failed(START, { from: 1000, to: 2000 }),
      file(QUEUE, { from: 1900, to: 3000 }),
      file(LEASES, { from: 2000, to: 3000 }),
    ]);
    const [slow] = failedTests(record?.files ?? []);
    expect(slow && record && neighboursOf(slow, record)).toEqual([QUEUE]);
  });
});
