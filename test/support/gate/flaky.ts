import { nameOf, type Failure } from './outcomes.ts';

/** Tests that failed once and passed each repeat, one JSON object a line: a list of defects. */
export const FLAKY_FILE = 'test/flaky.jsonl';

/** Tests whose failures do not block for a while: `date | file > title | issue or sentence`. */
export const QUARANTINE_FILE = 'test/quarantine.txt';
export const QUARANTINE_LINES = 5;
export const QUARANTINE_DAYS = 7;

/** A second failure by chance within so many runs puts a test in quarantine. */
const RUNS = 20;
/** Runs are counted by commits: 150 of November landed in 30 pieces of work. */
const COMMITS_A_RUN = 5;

/** The seed of random inputs (test/support/seeds) unless a failure names another one. */
const SEED = 1;

const DAY_MS = 86_400_000;

export type Flake = {
  date: string;
  commit: string | null;
  file: string;
  title: string;
  seed: number;
  /** The machine's load average over a minute when the test failed. */
  load: number;
  seconds: number;
  message: string;
  stack: string;
  /** The end of what the test printed. */
  output: string;
};

export type Quarantined = { date: string; test: string; why: string };

export type Quarantine = { lines: Quarantined[]; unreadable: string[] };

export function flakeOf(failure: Failure, at: Date, commit: string | null): Flake {
  const { file, title, load, startedAt, endedAt, message, stack, output } = failure;
  const seconds = Math.round((endedAt - startedAt) / 100) / 10;
  const seed = Number(/\bseed: (-?\d+)/.exec(message)?.[1] ?? SEED);
  return {
    date: at.toISOString(),
    commit,
    file,
    title,
    seed,
    load,
    seconds,
    message,
    stack,
    output,
  };
}

export function parseFlakes(text: string): Flake[] {
  const lines = text.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Flake);
}

/** Whether a test has failed by chance within the last 20 runs, by what was recorded of it. */
export function isSecond(
  flake: Flake,
  recorded: readonly Flake[],
  commitsSince: (date: string) => number,
): boolean {
  const before = recorded.filter((one) => nameOf(one) === nameOf(flake));
  return before.some(({ date }) => commitsSince(date) <= RUNS * COMMITS_A_RUN);
}

/** Lines that begin with `#` are remarks. */
export function parseQuarantine(text: string): Quarantine {
  const all = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const parsed = all.map((line) => /^(\d{4}-\d\d-\d\d) \| (\S+ > .+) \| (.+)$/.exec(line));
  return {
    lines: parsed.flatMap((match) => {
      const [, date, test, why] = match ?? [];
      return date && test && why ? [{ date, test, why }] : [];
    }),
    unreadable: all.filter((_, index) => parsed[index] === null),
  };
}

export function quarantineLine({ date, test, why }: Quarantined): string {
  return `${date} | ${test} | ${why}`;
}

/** What makes a run red whatever its tests do. */
export function faultsOf({ lines, unreadable }: Quarantine): string[] {
  const faults = unreadable.map((line) => `${QUARANTINE_FILE}: not readable: ${line}`);
  if (lines.length > QUARANTINE_LINES)
    faults.push(
      `${QUARANTINE_FILE}: ${lines.length} lines, of which ${QUARANTINE_LINES} are allowed`,
    );
  return faults;
}

/** Whether a test's failures block again: its line is as old as it may be. */
export function isExpired({ date }: Quarantined, at: Date): boolean {
  return at.getTime() - Date.parse(date) >= QUARANTINE_DAYS * DAY_MS;
}
