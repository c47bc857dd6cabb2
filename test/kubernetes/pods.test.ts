import { describe, expect, test } from 'vitest';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import { connectCluster, KubernetesUnavailable } from '#src/browsers/kubernetes/cluster.ts';
import { nameOf } from '#src/browsers/kubernetes/naming.ts';
import { browserPod, browserSecret } from '#src/browsers/kubernetes/pod.ts';
import { browsersAt } from '#src/browsers/kubernetes/pod-browsers.ts';
import { openSite } from '#src/browsers/kubernetes/site.ts';
import { aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';
import {
  kubernetesOptions,
  openKubernetesBrowsers,
} from '#test/support/browsers/kubernetes-browsers.fixture.ts';
import { kubectl } from '#test/support/kubernetes/cluster.ts';
import { jsonFile, launched } from '#test/support/kubernetes/pods.ts';

/** What Kubernetes does to Pods, and what the service reports of it. */

describe('a Pod that cannot start fails its launch with what Kubernetes says', () => {
  test('no node has room for it', async () => {
    await using opened = await openKubernetesBrowsers({ launchTimeoutMs: 5_000 });
    opened.options.limits.cpus = 4_000;
    opened.options.limits.requested.cpus = 4_000;
    const failure = opened.browsers.launch(aSpec());
    await expect(failure).rejects.toThrow(LaunchFailed);
    await expect(failure).rejects.toThrow(/5000 ms \(Unschedulable: .*Insufficient cpu/);
    expect(opened.traces()).toEqual([]);
  });

  test('its image cannot be pulled, which is tried for a while', async () => {
    await using opened = await openKubernetesBrowsers();
    opened.options.image = 'registry.invalid/browser:none';
    const failure = opened.browsers.launch(aSpec());
    await expect(failure).rejects.toThrow(/The Pod cannot start: (ErrImagePull|ImagePullBackOff)/);
    expect(opened.traces()).toEqual([]);
  });
});

describe('the end of a Pod is reported with its reason', () => {
  test('somebody deleted it', async () => {
    await using opened = await openKubernetesBrowsers();
    const { pod, end, workloadId } = await launched(opened);
    kubectl('delete', 'pod', pod, '--wait=false');
    const exit = await end();
    expect(exit).toMatchObject({ workloadId, reason: 'browser_crashed' });
    expect(exit.detail).toContain('The Pod was deleted on the node');
    expect(opened.traces()).toEqual([]);
  });

  test('it was evicted', async () => {
    await using opened = await openKubernetesBrowsers();
    const { pod, end } = await launched(opened);
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod, namespace: opened.options.namespace },
    };
    const path = `/api/v1/namespaces/${opened.options.namespace}/pods/${pod}/eviction`;
    kubectl('create', '--raw', path, '-f', jsonFile(eviction));
    expect((await end()).detail).toContain('EvictionByEvictionAPI');
  });

  test('its memory was used up', async () => {
    const small = 300 * 1024 ** 2;
    await using opened = await openKubernetesBrowsers();
    opened.options.limits.memoryBytes = small;
    const { browser, end } = await launched(opened);
    using cdp = await openCdp(browser.cdp);
    for (let count = 0; count < 20; count += 1) {
      const script = 'kept = []; setInterval(() => kept.push(new Uint8Array(5e7).fill(1)), 50)';
      const url = `data:text/html,<script>${script}</script>`;
      await cdp.send('Target.createTarget', { url }).catch(() => undefined);
    }
    expect(['out_of_memory', 'browser_crashed']).toContain((await end()).reason);
  });
});

describe('another process of the same server', () => {
  test('finds a browser with its session by its labels, and adopts it', async () => {
    await using opened = await openKubernetesBrowsers();
    const { workloadId, browser, pod } = await launched(opened);
    await opened.browsers.assign(workloadId, 'ses_kept');
    const label = '{.metadata.labels.browser-session-service/session}';
    expect(kubectl('get', 'pod', pod, '--output', `jsonpath=${label}`)).toBe('ses_kept');
    await opened.browsers.leave?.();
    await using next = await openKubernetesBrowsers({ serverId: opened.options.serverId });
    expect(await next.browsers.list()).toEqual([
      { workloadId, sessionId: 'ses_kept', adoptable: browser },
    ]);
    expect(await next.browsers.adopt(workloadId)).toEqual(browser);
    await next.browsers.stop(workloadId);
    expect(next.traces()).toEqual([]);
  });
});

test('browsers do not start where sessions reach each other, the node or the API server', async () => {
  const opening = openSite(kubernetesOptions({ isolation: 'required' }));
  await expect(opening).rejects.toThrow(KubernetesUnavailable);
  await expect(opening).rejects.toThrow(
    /^KUBERNETES_ISOLATION: .* reaches tcp .* 9223; .*\$API.*; .*\$NODE 10250; a Pod that is no/,
  );
});

test('a browser runs under another RuntimeClass: gVisor', async () => {
  await using opened = await openKubernetesBrowsers();
  opened.options.runtimeClass = 'gvisor';
  opened.options.seccomp = 'RuntimeDefault';
  const { browser, pod } = await launched(opened);
  using cdp = await openCdp(browser.cdp);
  expect(await cdp.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
  const inside = kubectl('exec', pod, '--container', 'browser', '--', 'dmesg');
  expect(inside).toContain('Starting gVisor');
});

test('the keys of a browser are in no Pod, no program of it, and no Secret once it runs', async () => {
  await using opened = await openKubernetesBrowsers();
  const { workloadId, vncPassword, pod } = await launched(opened);
  const key = opened.options.linkKeys(workloadId).export().toString('hex');
  const text = kubectl('get', 'pod', pod, '--output', 'json');
  expect(text).not.toContain(key);
  expect(text).not.toContain(vncPassword);
  expect(kubectl('get', 'secrets', '--output', 'name')).not.toContain(pod);
  // What is run by exec has the variables of the container.
  const without = ['env', '-u', 'LINK_KEY', '-u', 'VNC_PASSWORD', 'bash', '-c'];
  const script = 'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"';
  const environments = kubectl('exec', pod, '--container', 'browser', '--', ...without, script);
  expect(environments).toContain('SCREEN_SIZE=');
  expect(environments).not.toContain(key);
  expect(environments).not.toContain(vncPassword);
});

test('the Secret of a launch that was killed in its middle goes with its Pod', async () => {
  await using opened = await openKubernetesBrowsers();
  const { options } = opened;
  // No node has room: it would wait for ever.
  options.limits.cpus = options.limits.requested.cpus = 4_000;
  const pods = { ...options, owner: null };
  const { api, namespace, bounded } = await connectCluster(options);
  const spec = aSpec();
  const body = browserPod(pods, spec);
  const { metadata } = await api.createNamespacedPod({ namespace, body }, bounded());
  const secret = browserSecret(pods, spec, metadata?.uid ?? '');
  await api.createNamespacedSecret({ namespace, body: secret }, bounded());
  expect(opened.traces()).toHaveLength(2);
  kubectl('delete', 'pod', nameOf(spec.workloadId));
  await expect.poll(() => opened.traces(), { timeout: 60_000 }).toEqual([]);
});

test('Kubernetes deletes browsers with the ConfigMap that owns them', async () => {
  const owner = `bss-test-${process.pid}-owner`;
  kubectl('create', 'configmap', owner);
  const site = await openSite(kubernetesOptions({ owner }));
  const { log, launchTimeoutMs } = kubernetesOptions();
  await using browsers = await browsersAt(site, { log, launchTimeoutMs });
  const spec = aSpec();
  await browsers.launch(spec);
  const pod = () => kubectl('get', 'pod', nameOf(spec.workloadId), '--ignore-not-found');
  expect(pod()).toContain('Running');
  kubectl('delete', 'configmap', owner);
  await expect.poll(pod, { timeout: 60_000 }).toBe('');
});

test('an owner that is not there is refused by its variable', async () => {
  const opening = openSite(kubernetesOptions({ owner: 'absent' }));
  await expect(opening).rejects.toThrow(/KUBERNETES_OWNER: the ConfigMap absent of /);
});

test('a Pod is confined', async () => {
  await using opened = await openKubernetesBrowsers();
  const { pod } = await launched(opened);
  const inside = (command: string) =>
    kubectl('exec', pod, '--container', 'browser', '--', 'bash', '-c', command);
  expect(inside('id -u')).toBe('1000');
  expect(inside('grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status')).toMatch(
    /CapEff:\s+0{16}[^]*NoNewPrivs:\s+1[^]*Seccomp:\s+2/,
  );
  expect(inside('touch /usr/x 2>&1 || true')).toContain('Read-only file system');
  expect(inside('ls /var/run/secrets/kubernetes.io 2>&1 || true')).toContain('No such file');
});
