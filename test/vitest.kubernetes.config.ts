import { defineConfig } from 'vitest/config';
import { missingForCluster } from './support/kubernetes/missing.ts';
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

const missing = await missingForCluster();
if (missing !== null) process.env['TEST_KUBERNETES_LEFT_OUT'] = missing;

/** `npm run test:kubernetes`. Where this machine cannot have a cluster, nothing runs. */
export default defineConfig({
  root: shared.root ?? process.cwd(),
  test: {
    globalSetup:
      missing === null
        ? [shared.test?.globalSetup ?? [], 'test/support/kubernetes/cluster.setup.ts'].flat()
        : [],
    passWithNoTests: missing !== null,
    reporters: shared.test?.reporters ?? [],
    projects: [
      project(
        'kubernetes',
        { include: missing === null ? INCLUDED : [], exclude: [] },
        { testTimeout: 600_000 },
      ),
    ],
  },
});
