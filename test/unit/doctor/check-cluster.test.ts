import { expect, test } from 'vitest';
import { checkCluster } from '#src/apps/doctor/check-cluster.ts';
import type { ClusterFacts } from '#src/apps/doctor/facts.ts';

/** The doctor's findings about a namespace of Kubernetes. */

const healthy: ClusterFacts = {
  version: 'v1.35.4',
  namespace: 'browsers',
  runtimeClass: null,
  missing: [],
  quotas: [],
  image: { version: '150.0.7871.100', ageMs: 0, isGiven: true },
  noPod: null,
  network: { reachable: '', isClosable: true },
};

function levels(changes: Partial<ClusterFacts>) {
  return checkCluster({ ...healthy, ...changes })
    .filter(({ level }) => level !== 'ok')
    .map(({ check, level }) => `${check} ${level}`);
}

test('a namespace in which browsers run and are isolated has nothing bad', () => {
  expect(levels({})).toEqual([]);
});

test('permissions that are not granted are named, and nothing else is judged', () => {
  const missing = ['create pods/exec', 'delete secrets'];
  const none = { missing, image: null, noPod: null, network: null };
  expect(levels(none)).toEqual(['browsers.permissions bad', 'browsers.image warn']);
  const [permissions] = checkCluster({ ...healthy, ...none }).filter(
    ({ level }) => level === 'bad',
  );
  expect(permissions?.what).toBe('not granted: create pods/exec, delete secrets');
});

test('a Pod that does not run is bad, with the reason that Kubernetes tells', () => {
  const noPod = 'pod rejected: RuntimeClass "kata" not found';
  const found = checkCluster({
    ...healthy,
    runtimeClass: 'kata',
    image: null,
    network: null,
    noPod,
  });
  expect(found.find(({ check }) => check === 'browsers.pod')).toMatchObject({
    level: 'bad',
    what: `no Pod of a browser runs with runtime class kata: ${noPod}`,
  });
});

test('policies that are not in force are bad; without a closed Pod there is no egress', () => {
  const network = { reachable: 'a session reaches tcp 10.0.0.1 6443', isClosable: false };
  expect(levels({ network })).toEqual(['browsers.network bad', 'browsers.egress warn']);
});

test('a quota is judged by what is in use', () => {
  const quota = (resource: string, used: string, hard: string) =>
    ({ quota: 'team', resource, used, hard }) as const;
  expect(levels({ quotas: [quota('limits.memory', '17Gi', '20Gi')] })).toEqual([]);
  expect(levels({ quotas: [quota('limits.memory', '18700Mi', '20Gi')] })).toHaveLength(1);
  expect(levels({ quotas: [quota('requests.cpu', '9500m', '10')] })).toHaveLength(1);
  expect(levels({ quotas: [quota('pods', '0', '0')] })).toHaveLength(1);
  expect(levels({ quotas: null })).toEqual(['browsers.quota warn']);
});

test('a Kubernetes without the end of a program’s input is too old', () => {
  expect(levels({ version: 'v1.30.2' })).toEqual(['browsers.cluster bad']);
  expect(levels({ version: 'v1.31.0-eks-1234' })).toEqual([]);
});
