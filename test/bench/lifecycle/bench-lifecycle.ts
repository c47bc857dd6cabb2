import { startService, type RunningService } from '#test/support/service/service.ts';
import { createFigures, interleave } from '../harness/interleave.ts';
import type { Probe } from '../harness/probe.ts';
import { keepIdle, live, openCold, openTogether, WARM_UP_ROUNDS, type Life } from '../sessions.ts';
import { atMost, row, type Samples, type Verdict } from '../samples.ts';
import { launchBare, type BareMode, type Programs } from './bare-browser.ts';

/** How the section is measured; `env` is the same for all its services. */
export type LifecycleOptions = {
  programs: Programs;
  env: Record<string, string>;
  rounds: number;
  print: (line?: string) => void;
};

type Bare = 'launch' | 'exit' | 'gone';
type Figure = `${BareMode}: ${Bare}` | keyof Life | 'together' | 'bare together' | 'cold';

const TOGETHER = 4;
const ROWS: readonly [Figure, string][] = [
  ['headless: launch', 'bare headless: launch → first reply'],
  ['unsandboxed: launch', 'bare headless, no sandbox: → first reply'],
  ['headful: launch', 'bare headful + X server: → first reply'],
  ['bare together', `bare headless, ${TOGETHER} at once: → first reply`],
  ['headless: exit', 'bare headless: exit'],
  ['unsandboxed: exit', 'bare headless, no sandbox: exit'],
  ['headful: exit', 'bare headful: exit'],
  ['headless: gone', 'bare headless: exit of all its processes'],
  ['create', 'create, warm: POST → active'],
  ['firstReply', 'create, warm: POST → first CDP reply'],
  ['together', `create, warm, ${TOGETHER} at once: → first CDP reply`],
  ['cold', 'create, cold: POST → first CDP reply'],
  ['release', 'release: DELETE → answer'],
  ['socketClosed', "release: DELETE → client's CDP socket closed"],
  ['capacityBack', 'release: DELETE → a browser is idle again'],
];

/**
 * Sessions beside bare browsers, in turns on an idle machine: bare Chromium, and services that keep
 * one, four and no browser idle. All services run throughout, each in a process of its own.
 */
export async function benchLifecycle(options: LifecycleOptions, probe: Probe): Promise<Verdict[]> {
  const { env, rounds, programs, print } = options;
  await using one = await startService({ ...env, ...keepIdle(1) });
  await using four = await startService({ ...env, ...keepIdle(TOGETHER) });
  await using none = await startService({ ...env, ...keepIdle(0) });
  await warmUp(programs, { one, four, none });

  const figures = createFigures<Figure>();
  const bare = (mode: BareMode) => async () => {
    const { launchMs, exitMs, goneMs } = await bareLife(programs, mode);
    figures.add(`${mode}: launch`, launchMs);
    figures.add(`${mode}: exit`, exitMs);
    figures.add(`${mode}: gone`, goneMs);
  };
  const steps = [
    bare('headless'),
    async () => {
      const life = await live(one);
      for (const name of Object.keys(life) as (keyof Life)[]) figures.add(name, life[name]);
    },
    bare('headful'),
    async () => figures.add('cold', await openCold(none)),
    async () => figures.add('bare together', ...(await bareTogether(programs))),
    async () => figures.add('together', ...(await openTogether(four, TOGETHER))),
    bare('unsandboxed'),
  ];
  await interleave(steps, rounds, () => probe.take());
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  for (const [name, title] of ROWS) print(row(title, figures.of(name)));
  return verdictsOf((name) => figures.of(name));
}

/** The same ratios of other services. */
const PEERS = {
  create: 'Steel reused 0.37',
  firstReply: 'Steel reused 0.42, browserless 1.23',
  together: 'browserless 2.1',
  cold: 'browserless 1.23',
  release: 'browserless 0.01, not durable; Steel 6.1',
  socketClosed: 'Steel 6.0',
  capacityBack: 'Steel 1.5',
};

function verdictsOf(of: (name: Figure) => Samples): Verdict[] {
  const bare = of('headless: launch').p50;
  const exit = of('headless: exit').p50;
  const headful = of('headful: launch').p50;
  const together = of('bare together').p50;
  const turnover = of('headful: exit').p50 + headful;
  const { create, firstReply } = PEERS;
  const back = of('capacityBack').p50 / turnover;
  return [
    atMost('warm create p50 ÷ bare headless', of('create').p50 / bare, 0.035, create),
    atMost('warm create p95 ÷ bare headless', of('create').p95 / bare, 0.08),
    atMost('warm → first reply p50 ÷ bare', of('firstReply').p50 / bare, 0.045, firstReply),
    atMost('warm → first reply p95 ÷ bare', of('firstReply').p95 / bare, 0.09),
    atMost('4 at once p95 ÷ bare 4', of('together').p95 / together, 0.06, PEERS.together),
    atMost('cold → first reply ÷ bare headful', of('cold').p50 / headful, 1, PEERS.cold),
    atMost('release ÷ bare headless exit', of('release').p50 / exit, 0.06, PEERS.release),
    atMost('socket closed ÷ exit', of('socketClosed').p50 / exit, 0.15, PEERS.socketClosed),
    atMost('capacity back ÷ headful exit + launch', back, 1.3, PEERS.capacityBack),
  ];
}

/** The first of everything reads its files from the disk, and the services compile their code. */
async function warmUp(
  programs: Programs,
  { one, four, none }: Record<'one' | 'four' | 'none', RunningService>,
): Promise<void> {
  for (const mode of ['headless', 'unsandboxed', 'headful'] as const)
    await bareLife(programs, mode);
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await live(one);
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await openTogether(four, TOGETHER);
  await openCold(none);
}

export async function bareLife(programs: Programs, mode: BareMode) {
  const browser = await launchBare(programs, mode);
  const ended = await browser.exit();
  await browser.remove();
  return { launchMs: browser.launchMs, ...ended };
}

/** Bare headless browsers launched at once: the time of each to its first reply. */
export async function bareTogether(programs: Programs): Promise<number[]> {
  const browsers = await Promise.all(
    Array.from({ length: TOGETHER }, () => launchBare(programs, 'headless')),
  );
  for (const browser of browsers) {
    await browser.exit();
    await browser.remove();
  }
  return browsers.map(({ launchMs }) => launchMs);
}
