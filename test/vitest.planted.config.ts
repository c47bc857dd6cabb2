import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * The runs of `npm run planted`: any test files, without what `npm test` prepares before. A run
 * with a defect may leave processes and ports in disorder, so files do not share a process.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seeds/seeds.setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    cache: false,
  },
});
