import { expect, onTestFinished, test } from 'vitest';
import { openKubernetesBrowsers } from '#test/support/browsers/kubernetes-browsers.fixture.ts';
import { kubectl } from '#test/support/kubernetes/cluster.ts';
import { jsonFile, launched } from '#test/support/kubernetes/pods.ts';

/** The Pod takes the place of any browser of the node, so this runs alone. */
test('the end of a browser is reported that a Pod of a higher priority took the place of', async () => {
  await using opened = await openKubernetesBrowsers();
  opened.options.limits.requested.cpus = 1;
  const { end } = await launched(opened);
  const name = `bss-test-${process.pid}-first`;
  onTestFinished(() => void kubectl('delete', 'priorityclass', name));
  kubectl('create', 'priorityclass', name, '--value=1000');
  onTestFinished(() => void kubectl('delete', 'pod', name, '--now'));
  const spec = {
    priorityClassName: name,
    containers: [
      {
        name,
        image: opened.options.image,
        command: ['sleep', 'infinity'],
        resources: { requests: { cpu: '1200m' } },
      },
    ],
  };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
  kubectl('create', '-f', jsonFile(pod));
  expect((await end()).detail).toContain('PreemptionByScheduler');
});
