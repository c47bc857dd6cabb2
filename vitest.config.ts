import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**'],
    globalSetup: ['test/programs.setup.ts'],
    reporters: ['default', './test/summary.ts'],
    // A process per file: tests start and kill real programs. Two at once: timings stay honest on
    // two cores.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
