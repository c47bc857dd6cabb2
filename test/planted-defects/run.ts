/**
 * `npm run planted` plants each defect into a copy of the checkout and prints a line with the test
 * that found it, at the end `N passed, N failed`. It exits with 1 if a defect was missed.
 * `npm run planted -- ledger 'CDP relay'` plants those of some parts alone.
 */
import { fileURLToPath } from 'node:url';
import { ensurePrograms } from '#src/start/embedded/install/programs.ts';
import { bugs } from '#test/simulation/bugs.ts';
import { copyCheckout } from './checkout-copy.ts';
import { defects, type Defect } from './defects.ts';
import { failureOf, judge, type Report, type Verdict } from './judge.ts';
import { testFilesOf } from './test-files.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The part of the bugs that are planted into the simulation's servers, not into the source. */
const SIMULATION = 'simulation';
/** Its tests plant one of them each, which is in the title. */
const FINDS_BUGS = ['test/simulation/finds-bugs'];
/** The time limit of a test with a defect: some wait for what the defect keeps from happening. */
const PLANTED_MS = 30_000;
/** The time limit without a defect, where only a busy machine takes long. */
const PLAIN_MS = 300_000;

/** @returns how many defects were missed */
async function run(asked: readonly string[]): Promise<number> {
  const isAsked = (part: string) => asked.length === 0 || asked.includes(part);
  const chosen = defects.filter(({ part }) => isAsked(part));
  const simulated = isAsked(SIMULATION) ? bugs : [];
  await findPrograms();
  const copy = copyCheckout(ROOT);
  const tests = chosen.flatMap((defect) => defect.tests);
  if (simulated.length > 0) tests.push(...FINDS_BUGS);
  const plain = await copy.runTests(filesOf([...new Set(tests)]), PLAIN_MS);

  async function verdictOn(defect: Defect): Promise<Verdict> {
    const files = filesOf(defect.tests);
    const failure = failureOf(plain, files);
    if (failure !== null) return { missed: `its tests fail without it: ${failure}` };
    return judge(await copy.runWith(defect, files, PLANTED_MS), files);
  }
  let missed = 0;
  for (const defect of chosen) missed += print(defect.part, defect.name, await verdictOn(defect));
  for (const { name } of simulated) missed += print(SIMULATION, name, verdictOnBug(plain, name));
  console.log(`${chosen.length + simulated.length - missed} passed, ${missed} failed`);
  return missed;
}

/** What the contract suites start; in containers they would be the same programs again. */
async function findPrograms(): Promise<void> {
  const paths = await ensurePrograms(['nats-server', 'redis-server'], console.error);
  process.env['NATS_SERVER'] = paths['nats-server'];
  process.env['REDIS_SERVER'] = paths['redis-server'];
  process.env['TEST_DOCKER'] = 'no';
}

function filesOf(tests: readonly string[]): string[] {
  return tests.flatMap((test) => testFilesOf(ROOT, test));
}

function verdictOnBug({ testResults }: Report, bug: string): Verdict {
  const test = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find(({ fullName }) => fullName.endsWith(` ${bug}`));
  return test?.status === 'passed'
    ? { foundBy: test.fullName }
    : { missed: test?.failureMessages?.[0]?.split('\n', 1)[0] ?? 'no test of that title ran' };
}

/** @returns 1 if it was missed, else 0 */
function print(part: string, name: string, verdict: Verdict): number {
  const isFound = 'foundBy' in verdict;
  const end = isFound ? `by "${verdict.foundBy}"` : `(${verdict.missed})`;
  console.log(`${isFound ? 'found ' : 'MISSED'}  ${part}: ${name} ${end}`);
  return isFound ? 0 : 1;
}

const asked = process.argv.slice(2);
const parts = [...defects.map(({ part }) => part), SIMULATION];
const unknown = asked.filter((part) => !parts.includes(part));
// The copy is removed at the exit.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => process.exit(1));
if (unknown.length === 0) process.exitCode = (await run(asked)) === 0 ? 0 : 1;
else {
  console.error(`no part ${unknown.join(', ')}; there are: ${parts.join(', ')}`);
  process.exitCode = 2;
}
