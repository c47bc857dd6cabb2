import { defineConfig } from 'vitest/config';
import shared from './vitest.config.ts';

/** What is measured, and has the machine to itself. */
const MEASURED = [
  'docker-faults',
  'event-streams-load',
  'million-events',
  'parts-gone',
  'strangers-timing',
].map((name) => `test/long/${name}.test.ts`);

/** What takes minutes: tables of kills, load, great numbers of events. `.ci/run` runs it last. */
export default defineConfig({
  test: {
    globalSetup: shared.test?.globalSetup ?? [],
    reporters: shared.test?.reporters ?? [],
    projects: [
      project('faults', 0, { include: ['test/long/**/*.test.ts'], exclude: MEASURED }, 2),
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
