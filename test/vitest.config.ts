import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Tests that replace a module or count what their process holds: each needs a new process. */
const ISOLATED = ['test/unit/events/retired-shape.test.ts', 'test/contract/gateway.test.ts'];

/** What takes minutes (`npm run test:long`), in its short form too (`npm run soak`). */
export const LONG = ['test/**/*.long.test.ts', 'test/**/*.soak.test.ts'];

/** What needs a cluster (`npm run test:kubernetes`). */
const KUBERNETES = ['test/kubernetes/**'];

/** What `npm test` runs: every `*.test.ts` but those of the other commands. */
export default defineConfig({
  root: ROOT,
  test: {
    globalSetup: ['test/support/programs.setup.ts'],
    reporters: ['default', './test/support/summary.ts'],
    projects: [
      project('all', {
        include: ['test/**/*.test.ts'],
        exclude: [...LONG, ...KUBERNETES, ...ISOLATED],
      }),
      project('isolated', { include: ISOLATED, exclude: [] }, { isolate: true }),
    ],
  },
});

/**
 * A set of test files, by default with these settings:
 * - processes, not threads: tests start and kill real programs and set environment variables;
 * - three files at once: two cores are idle for a third of the time with two;
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
      maxWorkers: 3,
      isolate: false,
      testTimeout: 300_000,
      hookTimeout: 300_000,
      expect: { poll: { timeout: 60_000 } },
      ...more,
    },
  };
}
