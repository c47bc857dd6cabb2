import { defineConfig } from 'vitest/config';
import shared, { DOCKER_SETUP, project } from './vitest.config.ts';

/**
 * What `npm run soak` runs: the long form of every `*.soak.test.ts`, one file after the other, on a
 * machine that does nothing else. The last results are in .tools/soak.md.
 */
export default defineConfig({
  root: shared.root ?? process.cwd(),
  test: {
    globalSetup: [...new Set([shared.test?.globalSetup ?? [], DOCKER_SETUP].flat())],
    reporters: ['default', './test/support/soak-record.ts', './test/support/summary.ts'],
    env: { SOAK: '1' },
    projects: [
      project(
        'soak',
        { include: ['test/**/*.soak.test.ts'], exclude: [] },
        { maxWorkers: 1, testTimeout: 3_600_000, env: { SOAK: '1' } },
      ),
    ],
  },
});
