import { defineConfig } from 'vitest/config';
import shared, { project } from './vitest.config.ts';

/** What runs on a real cluster: the browsers' contract suites, and the tests of Kubernetes. */
const INCLUDED = [
  'test/contract/browsers/browsers.test.ts',
  'test/contract/browsers/browsers-ends.test.ts',
  'test/contract/browsers/browsers-extensions.long.test.ts',
  'test/contract/browsers/browser-folders.test.ts',
  'test/contract/browsers/screenshot.long.test.ts',
  'test/kubernetes/**/*.test.ts',
];

/** `npm run test:kubernetes`. */
export default defineConfig({
  root: shared.root ?? process.cwd(),
  test: {
    globalSetup: [
      shared.test?.globalSetup ?? [],
      'test/support/kubernetes/cluster.setup.ts',
    ].flat(),
    reporters: shared.test?.reporters ?? [],
    projects: [project('kubernetes', { include: INCLUDED, exclude: [] }, { testTimeout: 600_000 })],
  },
});
