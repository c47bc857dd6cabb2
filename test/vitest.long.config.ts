import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

/** What is measured, and has the machine to itself. */
const MEASURED = [
  'test/faults/docker/docker-faults.long.test.ts',
  'test/load/event-streams-load.soak.test.ts',
  'test/load/million-events.soak.test.ts',
  'test/faults/parts-gone.long.test.ts',
  'test/load/timing-side-channel.long.test.ts',
];

const LONG = ['test/**/*.long.test.ts', 'test/**/*.soak.test.ts'];

/** What takes minutes: tables of kills, load, great numbers of events. `.ci/run` runs it last. */
export default defineConfig({
  test: {
    globalSetup: shared.test?.globalSetup ?? [],
    reporters: shared.test?.reporters ?? [],
    projects: [
      project('faults', 0, { include: LONG, exclude: MEASURED }, 2),
      project('measured', 1, { include: MEASURED, exclude: [] }, 1),
    ],
  },
});

/** Tests that run after those of a lower `groupOrder`, so many files at once. */
function project(
  name: string,
  groupOrder: number,
  files: { include: string[]; exclude: string[] },
  maxWorkers: number,
) {
  return {
    test: {
      name,
      ...files,
      sequence: { groupOrder },
      pool: 'forks' as const,
      maxWorkers,
      testTimeout: 900_000,
      hookTimeout: 300_000,
    },
  };
}
