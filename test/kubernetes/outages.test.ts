import { expect, test } from 'vitest';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import { nameOf } from '#src/browsers/kubernetes/naming.ts';
import { aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { openKubernetesBrowsers } from '#test/support/browsers/kubernetes-browsers.fixture.ts';
import { kubectl } from '#test/support/kubernetes/cluster.ts';
import { launched } from '#test/support/kubernetes/pods.ts';
import { silence } from '#test/support/kubernetes/silence.ts';

/** All Pods of the node stand behind the same kubelet and API server, so these run alone. */
const POLL = { timeout: 120_000, interval: 1_000 };

test('a browser on a node that does not answer ends with its Pod’s deletion, and is removed', async () => {
  await using opened = await openKubernetesBrowsers();
  const { pod, workloadId, end } = await launched(opened);
  const other = await launched(opened);
  {
    using _ = silence('kubelet');
    kubectl('delete', 'pod', pod, '--wait=false');
    const exit = await end();
    expect(exit).toMatchObject({ workloadId, reason: 'browser_crashed', exitCode: null });
    expect(exit.detail).toContain('The Pod was deleted on the node');
    expect(opened.traces()).toEqual([`pod/${other.pod}`]);
  }
  // The node knows of it again, and the other browser has gone on.
  expect(await opened.browsers.list()).toMatchObject([{ workloadId: other.workloadId }]);
  await opened.browsers.stop(other.workloadId);
  expect(opened.traces()).toEqual([]);
});

test('an API server that is silent amid a launch, an assignment and a stop leaves nothing undone', async () => {
  await using opened = await openKubernetesBrowsers({ launchTimeoutMs: 30_000 });
  const { browsers, traces } = opened;
  const [assigned, stopped] = [await launched(opened), await launched(opened)];
  const available: boolean[] = [];
  browsers.onAvailable?.((isAvailable) => available.push(isAvailable));
  const spec = aSpec();
  const launching = browsers.launch(spec);
  launching.catch(() => undefined);
  const name = `pod/${nameOf(spec.workloadId)}`;
  await expect.poll(() => traces(), { ...POLL, interval: 10 }).toContain(name);
  {
    using _ = silence('kube-apiserver');
    const [launch, assignment, stop] = await Promise.allSettled([
      launching,
      browsers.assign(assigned.workloadId, 'ses_1'),
      browsers.stop(stopped.workloadId),
    ]);
    expect(launch).toMatchObject({ reason: expect.any(LaunchFailed) });
    expect([assignment.status, stop.status]).toEqual(['rejected', 'rejected']);
    expect(available).toEqual([false]);
  }
  await expect.poll(() => available, POLL).toEqual([false, true]);
  await expect.poll(() => traces(), POLL).not.toContain(name);
  const label = '{.metadata.labels.browser-session-service/session}';
  const labelOf = () => kubectl('get', 'pod', assigned.pod, '--output', `jsonpath=${label}`);
  await expect.poll(labelOf, POLL).toBe('ses_1');
  await browsers.stop(stopped.workloadId);
  expect(traces()).toEqual([`pod/${assigned.pod}`]);
  await browsers.stop(assigned.workloadId);
  expect(traces()).toEqual([]);
});

test('a Pod that lacks its session’s label and annotation, as after an outage, gets them again', async () => {
  await using opened = await openKubernetesBrowsers();
  const { workloadId, pod } = await launched(opened);
  await opened.browsers.assign(workloadId, 'ses_1');
  for (const kind of ['label', 'annotate'])
    kubectl(kind, 'pod', pod, 'browser-session-service/session-');
  const label = '{.metadata.labels.browser-session-service/session}';
  const labelOf = () => kubectl('get', 'pod', pod, '--output', `jsonpath=${label}`);
  await expect.poll(labelOf, POLL).toBe('ses_1');
});
