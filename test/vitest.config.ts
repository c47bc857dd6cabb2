import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.long.test.ts', 'test/**/*.soak.test.ts'],
    globalSetup: ['test/support/programs.setup.ts'],
    reporters: ['default', './test/support/summary.ts'],
    // A process per file: tests start and kill real programs. Two at once: timings stay honest on
    // two cores.
    pool: 'forks',
    maxWorkers: 2,
    // For what hangs: a machine may be many times slower than it is when nothing else runs on it.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
