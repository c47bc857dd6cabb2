import { defineConfig } from 'vitest/config';
import { missingForCluster } from './support/kubernetes/missing.ts';
import shared, { DOCKER_SETUP, project } from './vitest.config.ts';

/** The browsers' contract suites, and what Kubernetes does to Pods. */
const BESIDE = [
  'test/contract/browsers/browsers.real.test.ts',
  'test/contract/browsers/browsers-ends.real.test.ts',
  'test/contract/browsers/browsers-screens.long.test.ts',
  'test/contract/browsers/browsers-webdriver.real.test.ts',
  'test/contract/browsers/browsers-extensions.long.test.ts',
  'test/contract/browsers/browser-folders.real.test.ts',
  'test/contract/browsers/screenshot.long.test.ts',
  'test/kubernetes/pods.test.ts',
  'test/kubernetes/chart-templates.test.ts',
];
/** What counts connections, and what is done to all of the node: one by one, last. */
const ALONE = [
  'test/kubernetes/preempted.test.ts',
  'test/kubernetes/outages.test.ts',
  'test/kubernetes/rounds.test.ts',
  'test/kubernetes/chart.test.ts',
];

const missing = await missingForCluster();
if (missing !== null) process.env['TEST_KUBERNETES_LEFT_OUT'] = missing;

/** `npm run test:kubernetes`. Where this machine cannot have a cluster, nothing runs. */
export default defineConfig({
  root: shared.root ?? process.cwd(),
  test: {
    globalSetup:
      missing === null
        ? [
            ...new Set([shared.test?.globalSetup ?? [], DOCKER_SETUP].flat()),
            'test/support/kubernetes/cluster.setup.ts',
          ]
        : [],
    passWithNoTests: missing !== null,
    reporters: shared.test?.reporters ?? [],
    projects:
      missing === null
        ? [
            project('kubernetes', { include: BESIDE, exclude: [] }, { testTimeout: 600_000 }),
            project(
              'cluster',
              { include: ALONE, exclude: [] },
              { maxWorkers: 1, testTimeout: 600_000, sequence: { groupOrder: 1 } },
            ),
          ]
        : [project('kubernetes', { include: [], exclude: [] })],
  },
});
