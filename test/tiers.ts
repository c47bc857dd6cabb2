/**
 * Which files a command runs. The end of a file's name says it, so that nothing is listed twice:
 *
 * - `*.test.ts`: `npm test`, what is deterministic;
 * - `*.real.test.ts`: `npm run test:real`, real browsers, containers and kills;
 * - `*.quiet.test.ts`: the same command, after those, two at a time: what has a time to keep;
 * - `*.long.test.ts`, `*.soak.test.ts`: `npm run test:nightly`, what takes minutes; of the soak a
 *   short form, and the contract suites a second time on servers in containers.
 *   `npm run test:real` runs those of the files that the change is about;
 * - `npm run test:release`: the soak in its long form, and `test/kubernetes` on a cluster.
 */
export const tierNames = ['test', 'real', 'nightly', 'release'] as const;
export type Tier = (typeof tierNames)[number];

/** The command of each tier, as the summary of another one names it. */
export const COMMANDS: Readonly<Record<Tier, string>> = {
  test: 'npm test',
  real: 'npm run test:real',
  nightly: 'npm run test:nightly',
  release: 'npm run test:release',
};

export const REAL = ['test/**/*.real.test.ts'];
export const QUIET = ['test/**/*.quiet.test.ts'];
export const LONG = ['test/**/*.long.test.ts', 'test/**/*.soak.test.ts'];
/** Suites that a nightly run repeats with their nats-server or redis-server in a container. */
export const CONTAINERS = [
  'test/contract/event-store/{event-store,point-in-time,session-history,subscribe}.test.ts',
  'test/contract/messaging/{dead-letters,leases,mcp-sessions}.test.ts',
  'test/contract/messaging/{screenshots,timers,work-queue}.test.ts',
  'test/contract/messaging/{leases,timers,work-queue}-jetstream.quiet.test.ts',
  'test/contract/projections/views*.test.ts',
];
/** Tests that replace a module or count what their process holds: each needs a new process. */
export const ISOLATED = [
  'test/contract/gateway.test.ts',
  'test/unit/api/page-captures.test.ts',
  'test/unit/events/retired-shape.test.ts',
];
export const KUBERNETES = ['test/kubernetes/**'];

/** The tier of a test file, by its path from the top of the project. */
export function tierOf(path: string): Tier {
  if (path.startsWith('test/kubernetes/')) return 'release';
  const [, suffix] = /\.(\w+)\.test\.ts$/.exec(path) ?? [];
  if (suffix === 'real' || suffix === 'quiet') return 'real';
  return suffix === 'long' || suffix === 'soak' ? 'nightly' : 'test';
}

/**
 * The tiers that a run is about, by the variable TEST_TIERS: their names with a comma between.
 * Without it those of `npm test`.
 * @throws Error naming what is no tier
 */
export function tiersOf(given: string | undefined): readonly Tier[] {
  return (given ?? 'test').split(',').map((name) => {
    const tier = tierNames.find((known) => known === name);
    if (tier === undefined) throw new Error(`TEST_TIERS: ${name} is none of ${tierNames.join()}`);
    return tier;
  });
}
