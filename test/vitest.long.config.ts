import { defineConfig } from 'vitest/config';
import shared, { LONG, project } from './vitest.config.ts';

/** What measures times or memory: these run last, one file after the other. */
const MEASURED = [
  'test/faults/parts-gone.long.test.ts',
  'test/faults/docker/docker-faults.long.test.ts',
  'test/load/dashboard-load.soak.test.ts',
  'test/load/docker-rounds.soak.test.ts',
  'test/load/million-events.soak.test.ts',
  'test/load/timing-side-channel.long.test.ts',
];

/** What takes minutes: faults in tables, load, whole topologies. `.ci/run all` runs all of it. */
export default defineConfig({
  root: shared.root ?? process.cwd(),
  test: {
    globalSetup: [shared.test?.globalSetup ?? [], 'test/support/servers/s3.setup.ts'].flat(),
    reporters: shared.test?.reporters ?? [],
    projects: [
      project('long', { include: LONG, exclude: MEASURED }, { testTimeout: 900_000 }),
      project(
        'measured',
        { include: MEASURED, exclude: [] },
        { maxWorkers: 1, testTimeout: 900_000, sequence: { groupOrder: 1 } },
      ),
    ],
  },
});
