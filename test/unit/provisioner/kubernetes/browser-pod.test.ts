import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { createLinkKeys } from '#src/browsers/link/browser-link.ts';
import { idsOf, labelOf, nameOf } from '#src/browsers/kubernetes/naming.ts';
import { browserPod, browserSecret, type PodOptions } from '#src/browsers/kubernetes/pod.ts';

const MIB = 1024 ** 2;
const options: PodOptions = {
  image: 'registry.example/browser:1',
  serverId: 'srv_1',
  seccomp: 'browser-session-service.json',
  runtimeClass: null,
  hasUserNamespace: false,
  dns: [],
  limits: {
    memoryBytes: 2048 * MIB,
    cpus: 2,
    requested: { memoryBytes: 512 * MIB, cpus: 0.25 },
    filesBytes: 1024 * MIB,
  },
  more: {},
  linkKeys: createLinkKeys(Buffer.alloc(32, 'k')),
  owner: null,
};
const spec = {
  workloadId: 'wl_AbC-_9-',
  vncPassword: 'pass0rd1',
  screen: { width: 800, height: 600 },
};

describe('a browser’s Pod', () => {
  it('runs as an ordinary user without rights, token, or a root that it may write', () => {
    const { spec: pod } = browserPod(options, spec);
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        seccompProfile: { type: 'Localhost', localhostProfile: 'browser-session-service.json' },
      },
    });
    for (const container of pod?.containers ?? [])
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    expect(pod?.containers.map(({ name }) => name)).toEqual(['browser']);
    expect(pod?.hostNetwork).toBeUndefined();
  });

  it('is deleted with the ConfigMap that owns it, which does not control it', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'sessions-browsers', uid: 'u1' };
    const { metadata } = browserPod({ ...options, owner }, spec);
    expect(metadata?.ownerReferences).toEqual([owner]);
    expect(browserPod(options, spec).metadata?.ownerReferences).toBeUndefined();
  });

  it('has its secrets in a Secret alone', () => {
    const text = JSON.stringify(browserPod(options, spec));
    const { stringData, metadata } = browserSecret(options, spec, 'uid-1');
    const { name } = browserPod(options, spec).metadata ?? {};
    expect(metadata).toMatchObject({
      name,
      ownerReferences: [{ kind: 'Pod', name, uid: 'uid-1' }],
    });
    expect(stringData).toMatchObject({ VNC_PASSWORD: 'pass0rd1' });
    expect(stringData?.['LINK_KEY']).toMatch(/^[\da-f]{64}$/);
    for (const secret of Object.values(stringData ?? {})) expect(text).not.toContain(secret);
    expect(browserSecret(options, { ...spec, headless: true }, 'uid-1').stringData).toMatchObject({
      VNC_PASSWORD: '',
    });
  });

  it('starts the programs of the image without the keys in their environment', () => {
    const [{ command = [], args } = {}] = browserPod(options, spec).spec?.containers ?? [];
    const [program = '', ...given] = [...command, ...(args ?? [])];
    const shown = `keys=$(cat); echo "$keys"; env; printf '%s ' "$@"`;
    const script = given.map((one) => (one === 'tini' ? 'bash' : one));
    // In place of tini's own `--` and the image's entrypoint.
    script.splice(script.indexOf('--'), 3, '-c', shown, 'image');
    const env = { PATH: process.env['PATH'], LINK_KEY: 'k3y', VNC_PASSWORD: 'pass0rd1' };
    const { stdout } = spawnSync(program, script, { env, encoding: 'utf8' });
    expect(stdout).toMatch(/^k3y\npass0rd1\n/);
    expect(stdout).not.toMatch(/LINK_KEY|VNC_PASSWORD/);
    expect(stdout.trimEnd()).toMatch(new RegExp(`${args?.at(-1)}$`));
  });

  it('is found by its workload and its server, whose ids are no names', () => {
    const { metadata } = browserPod(options, spec);
    expect(idsOf(browserPod(options, spec))).toEqual({
      workloadId: 'wl_AbC-_9-',
      serverId: 'srv_1',
      sessionId: null,
    });
    expect(metadata?.name).toBe(nameOf('wl_AbC-_9-'));
    expect(metadata?.name).toMatch(/^[a-z][a-z0-9-]{0,62}$/);
    expect(nameOf('wl_abc-_9-')).not.toBe(nameOf('wl_AbC-_9-'));
    expect(labelOf('wl_AbC-_9-')).toBe('wl_AbC-_9');
    expect(idsOf({ metadata: { name: 'another' } })).toBeNull();
  });

  it('with a runtime, a user namespace and what the operator adds has them', () => {
    const more = {
      nodeSelector: { pool: 'browsers' },
      tolerations: [{ key: 'browsers', operator: 'Exists' }],
    };
    const changed = { ...options, runtimeClass: 'gvisor', hasUserNamespace: true, more };
    const { spec: pod } = browserPod({ ...changed, seccomp: 'RuntimeDefault' }, spec);
    expect(pod).toMatchObject({
      runtimeClassName: 'gvisor',
      hostUsers: false,
      nodeSelector: { pool: 'browsers' },
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(pod?.tolerations).toContainEqual({ key: 'browsers', operator: 'Exists' });
  });

  it('asks its node’s name servers, the cluster’s, or those that are given, and none if it has no way out', () => {
    expect(browserPod(options, spec).spec).toMatchObject({ dnsPolicy: 'Default' });
    expect(browserPod({ ...options, dns: 'cluster' }, spec).spec).toMatchObject({
      dnsPolicy: 'ClusterFirst',
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
    });
    const given = browserPod({ ...options, dns: ['192.0.2.53'] }, spec).spec;
    expect(given).toMatchObject({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.53'] } });
    const egress = { serve: () => undefined, closed: new AbortController().signal };
    const closed = browserPod(options, { ...spec, egress } as unknown as Parameters<
      typeof browserPod
    >[1]);
    expect(closed.spec).toMatchObject({ dnsConfig: { nameservers: ['192.0.2.1'] } });
    expect(closed.metadata?.labels).toMatchObject({ 'browser-session-service/egress': 'closed' });
  });

  it('with a profile has a keeper, and waits for what it is prepared with', () => {
    const profile = { tar: null, isKept: true };
    const [browser, keeper] = browserPod(options, { ...spec, profile }).spec?.containers ?? [];
    expect(keeper?.name).toBe('keeper');
    expect(browser?.command?.join(' ')).toContain('/prepared/ready');
    expect(browser?.volumeMounts).toContainEqual({
      name: 'prepared',
      mountPath: '/prepared',
      readOnly: true,
    });
    expect(browser?.args).toContain('--user-data-dir=/profile/data');
  });
});
