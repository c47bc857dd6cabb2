import type { Verdict } from '../samples.ts';

type Print = (line?: string) => void;

const NAME_WIDTH = 48;
/** Where the figures of other services come from. */
const PEERS_NOTE =
  'Peers: steel-browser 746f074 (2026-06-09) and browserless v2.54.2 (2026-06-29) beside bare ' +
  'Chromium and Fastify,\non another machine of two cores; not measured in this run.';

/**
 * Prints each ratio with its goal: of one run, or of several with their median and spread.
 * @returns whether each median meets its goal
 */
export function printVerdicts(print: Print, runs: readonly Verdict[][]): boolean {
  if (runs.length > 1)
    print(`\n${'ratio'.padEnd(NAME_WIDTH)}  median   spread    goal  met in  runs`);
  else print(`\n${'ratio'.padEnd(NAME_WIDTH)}measured    goal`);
  let areMet = true;
  for (const verdicts of byName(runs)) {
    const [{ name, goal, peers, isAtLeast } = noVerdict] = verdicts;
    const median = medianOf(verdicts.map(({ ratio }) => ratio));
    const isMet = isAtLeast ? median >= goal : median <= goal;
    areMet &&= isMet;
    const cells = runs.length > 1 ? ofRuns(verdicts, median) : ofOne(median, goal, isMet);
    const others = peers === undefined ? '' : `   (${peers})`;
    print(`${name.padEnd(NAME_WIDTH)}${cells}${others}`.trimEnd());
  }
  if (runs.flat().some(({ peers }) => peers !== undefined)) print(`\n${PEERS_NOTE}`);
  return areMet;
}

const noVerdict: Verdict = { name: '', ratio: 0, goal: 0, isMet: false, isAtLeast: false };

function byName(runs: readonly Verdict[][]): Verdict[][] {
  return [...Map.groupBy(runs.flat(), ({ name }) => name).values()];
}

/** Of an even number the mean of the two in the middle. */
function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (index: number) => sorted[Math.floor(index)] ?? Number.NaN;
  return (at((sorted.length - 1) / 2) + at(sorted.length / 2)) / 2;
}

function ofOne(ratio: number, goal: number, isMet: boolean): string {
  const cells = [ratio.toFixed(3).padStart(8), String(goal).padStart(8)];
  return `${cells.join('')}  ${isMet ? 'met    ' : 'NOT MET'}`;
}

/** Spread: the greatest less the least, beside the median. */
function ofRuns(verdicts: readonly Verdict[], median: number): string {
  const ratios = verdicts.map(({ ratio }) => ratio);
  const spread = (Math.max(...ratios) - Math.min(...ratios)) / Math.abs(median);
  const met = verdicts.filter(({ isMet }) => isMet).length;
  const cells = [
    median.toFixed(3).padStart(8),
    `${(100 * spread).toFixed(0)} %`.padStart(9),
    String(verdicts[0]?.goal).padStart(8),
    `${met}/${verdicts.length}`.padStart(8),
  ];
  return `${cells.join('')}  ${ratios.map((ratio) => ratio.toFixed(3)).join(' ')}`;
}
