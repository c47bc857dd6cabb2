import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { chosenFiles } from './support/gate/chosen-files.ts';
import { LongestFirst } from './support/gate/longest-first.ts';
import {
  CONTAINERS,
  ISOLATED,
  KUBERNETES,
  LONG,
  QUIET,
  REAL,
  tierOf,
  tiersOf,
  type Tier,
} from './tiers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What measures times or memory: these run last, one file after the other. */
const MEASURED = [
  'test/faults/parts-gone.long.test.ts',
  'test/faults/docker/docker-faults.long.test.ts',
  'test/load/dashboard-load.soak.test.ts',
  'test/load/docker-rounds.soak.test.ts',
  'test/load/million-events.soak.test.ts',
  'test/load/timing-side-channel.long.test.ts',
];

/** What takes minutes may take more of them on a busy machine. */
const LONG_LIMITS = { testTimeout: 900_000 };
const TIERS = tiersOf(process.env['TEST_TIERS']);
/** Files that are named run whatever their tier is. */
const named = process.argv.filter((argument) => /^test\/.*\.test\.ts$/.test(argument));
const has = (tier: Tier): boolean => named.length > 0 || TIERS.includes(tier);
/** A repeat of files that are named, by test/gate.ts: so many times, one after the other. */
const again = Number(process.env['TEST_AGAIN'] ?? 0);
/** An S3 server takes minutes to build. */
const needsS3 =
  named.length === 0 ? TIERS.includes('nightly') : named.some((file) => file.includes('s3'));
/** `npm test` needs no engine and waits for none. */
const needsDocker =
  TIERS.some((tier) => tier !== 'test') || named.some((file) => tierOf(file) !== 'test');
export const DOCKER_SETUP = 'test/support/servers/docker.setup.ts';

/**
 * One process of vitest for all tiers of a run: groups one after the other, in each the file that
 * takes longest first.
 */
export default defineConfig({
  root: ROOT,
  test: {
    globalSetup: [
      'test/support/programs.setup.ts',
      ...(needsDocker ? [DOCKER_SETUP] : []),
      ...(needsS3 ? ['test/support/servers/s3.setup.ts'] : []),
    ],
    reporters: ['default', './test/support/summary.ts'],
    sequence: { sequencer: LongestFirst },
    projects:
      again > 0
        ? repeats(named, again)
        : [
            ...(has('test') ? deterministic() : []),
            ...(has('real') ? real() : []),
            ...(has('nightly') ? nightly() : []),
            ...(TIERS.includes('nightly') ? [containers(), properties()] : []),
          ],
  },
});

function deterministic() {
  return [
    project(
      'test',
      {
        include: ['test/**/*.test.ts'],
        exclude: [...REAL, ...QUIET, ...LONG, ...KUBERNETES, ...ISOLATED],
      },
      { maxWorkers: 4 },
    ),
    project('isolated', { include: ISOLATED, exclude: [] }, { isolate: true, maxWorkers: 4 }),
  ];
}

/** Real parts, and long files that the change is about; then what needs a quiet machine. */
function real() {
  const group = { sequence: { groupOrder: 1 } };
  const chosen = has('nightly') ? [] : chosenFiles(ROOT);
  return [
    project('real', { include: REAL, exclude: [] }, group),
    ...(chosen.length === 0
      ? []
      : [project('chosen', { include: chosen, exclude: [] }, { ...group, ...LONG_LIMITS })]),
    project(
      'quiet',
      { include: QUIET, exclude: [] },
      // They wait for most of their time: one at a time leaves two thirds of two cores idle.
      { maxWorkers: 2, sequence: { groupOrder: 2 } },
    ),
  ];
}

function nightly() {
  return [
    project(
      'long',
      { include: LONG, exclude: MEASURED },
      { ...LONG_LIMITS, sequence: { groupOrder: 3 } },
    ),
    project(
      'measured',
      { include: MEASURED, exclude: [] },
      { ...LONG_LIMITS, maxWorkers: 1, sequence: { groupOrder: 4 } },
    ),
  ];
}

/** The same files again and again, each time in a new process, or in TEST_WORKERS of them. */
function repeats(files: string[], times: number) {
  const maxWorkers = Number(process.env['TEST_WORKERS'] ?? 1);
  return Array.from({ length: times }, (_, round) =>
    project(
      `round ${round + 1}`,
      { include: files, exclude: [] },
      { maxWorkers, sequence: { groupOrder: round } },
    ),
  );
}

/** Suites of NATS and Redis adapters a second time, with the servers of their official images. */
function containers() {
  return project(
    'containers',
    { include: CONTAINERS, exclude: [] },
    { ...LONG_LIMITS, env: { TEST_SERVERS: 'container' }, sequence: { groupOrder: 3 } },
  );
}

/** Properties over random inputs a second time, with many more inputs and a seed of the night. */
function properties() {
  const include = globSync('test/**/*.test.ts', { cwd: ROOT }).filter(
    (file) =>
      tierOf(file) === 'test' && readFileSync(join(ROOT, file), 'utf8').includes("'fast-check'"),
  );
  return project(
    'properties',
    { include, exclude: [] },
    { ...LONG_LIMITS, env: { TEST_SEEDS: 'new' }, sequence: { groupOrder: 3 } },
  );
}

/**
 * A set of test files, by default with these settings:
 * - processes, not threads: tests start and kill real programs and set environment variables;
 * - three files at once: two cores are idle for a third of the time with two. Those of `npm test`
 *   start few programs and leave a quarter idle with three: there it is four;
 * - a process runs many files: importing the project anew takes a second of processor time a file;
 * - time limits are for what hangs, since a busy machine may be many times slower than an idle one.
 */
export function project(
  name: string,
  files: { include: string[]; exclude: string[] },
  more: {
    isolate?: boolean;
    maxWorkers?: number;
    testTimeout?: number;
    env?: Record<string, string>;
    sequence?: { groupOrder: number };
  } = {},
) {
  return {
    root: ROOT,
    test: {
      name,
      ...files,
      pool: 'forks' as const,
      setupFiles: ['test/support/seeds/seeds.setup.ts'],
      maxWorkers: 3,
      isolate: false,
      testTimeout: 300_000,
      hookTimeout: 300_000,
      expect: { poll: { timeout: 60_000 } },
      ...more,
    },
  };
}
