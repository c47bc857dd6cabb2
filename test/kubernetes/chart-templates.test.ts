import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { permissionsFor } from '#src/browsers/kubernetes/permissions.ts';
import { kubectl, kubectlCommand, testNamespace } from '#test/support/kubernetes/cluster.ts';
import { CHART, helm } from '#test/support/kubernetes/helm.ts';

/** The chart's templates, as helm and a real API server judge them. */

const EXAMPLES = join(CHART, 'examples');
/** Of the browsers of a release `judged`. */
const BROWSERS = 'judged-browsers';
const examples = readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml'));
/** Of operators that the cluster does not have; their own CRDs judge these. */
const FOREIGN = /^apiVersion: (keda\.sh|monitoring\.coreos\.com|gateway\.networking\.k8s\.io)\//m;

it('has five examples of values', () => {
  expect(examples).toHaveLength(5);
});

describe.each(examples)('the chart with %s', (name) => {
  const values = join(EXAMPLES, name);

  it('is rendered without a warning', () => {
    const { printed, warned } = helm('lint', CHART, '--strict', '--values', values);
    expect(warned).toBe('');
    expect(printed).toContain('0 chart(s) failed');
    expect(printed).not.toContain('[WARNING]');
  });

  it('is taken by the API server without a warning', () => {
    const { printed, warned } = helm(
      'template',
      'judged',
      CHART,
      '--values',
      values,
      ...asOfServer(),
    );
    expect(warned).toBe('');
    const documents = printed.split(/^---$/m).filter((text) => /^kind:/m.test(text));
    const known = documents.filter((text) => !FOREIGN.test(text));
    expect(known.length).toBeGreaterThan(20);
    // The server admits a Pod only of an account that it has, and what is in a namespace likewise.
    const isNamespace = (text: string) => /^kind: Namespace$/m.test(text);
    const isThere = (text: string) => text.includes(`\n  namespace: ${BROWSERS}\n`);
    apply(known.filter((text) => isNamespace(text) || /^kind: ServiceAccount$/m.test(text)));
    onTestFinished(() => void kubectl('delete', 'namespace', BROWSERS, '--wait=true'));
    const elsewhere = known.filter(isThere);
    expect(elsewhere.length).toBeGreaterThan(5);
    expect(apply(elsewhere, '--dry-run=server', '--namespace', BROWSERS)).toBe('');
    const here = known.filter((text) => !isThere(text) && !isNamespace(text));
    expect(apply(here, '--dry-run=server')).toBe('');
  });
});

describe.each([
  ['judged-browsers', []],
  ['elsewhere', ['browsers.namespace.name=elsewhere', 'browsers.namespace.create=false']],
])('with browsers in the namespace %s', (namespace, values) => {
  const set = ['browsers.image=b', ...values].flatMap((value) => ['--set', value]);
  const { printed } = helm('template', 'judged', CHART, ...set, ...asOfServer());
  const documents = printed.split(/^---$/m);
  const rbac = read(documents.filter((text) => /^kind: (Cluster)?Role(Binding)?$/m.test(text)));
  const isThere = ({ metadata }: Rbac) => metadata.namespace === namespace;
  /** The rules of an account of the release, in the namespace of the browsers or elsewhere. */
  const rulesOf = (account: string, there: boolean) =>
    rbac
      .filter((one) => isThere(one) === there)
      .filter(({ subjects = [] }) => subjects.some(({ name }) => name === account))
      .flatMap(({ roleRef, metadata }) =>
        rbac.filter(
          (one) =>
            one.kind === roleRef?.kind &&
            one.metadata.name === roleRef.name &&
            one.metadata.namespace === metadata.namespace,
        ),
      )
      .flatMap(({ rules = [] }) => rules);

  it('no Role is of the whole cluster', () => {
    expect(rbac.length).toBeGreaterThan(5);
    expect(rbac.filter(({ kind }) => kind.startsWith('Cluster'))).toEqual([]);
  });

  it('a provisioner may elsewhere only look at its own StatefulSet', () => {
    expect(rulesOf('judged-provisioner', false)).toEqual([
      {
        apiGroups: ['apps'],
        resources: ['statefulsets'],
        resourceNames: ['judged-provisioner'],
        verbs: ['get'],
      },
    ]);
    expect(rulesOf('judged-bss', false)).toEqual([]);
    expect(rulesOf('judged', false)).toEqual([]);
  });

  it('it may do there what its code asks for, and nothing else', () => {
    const wanted = permissionsFor('judged-browsers').map(({ resource, verbs, name }) => ({
      apiGroups: [''],
      resources: [resource],
      verbs: [...verbs],
      ...(name === undefined ? {} : { resourceNames: [name] }),
    }));
    expect(rulesOf('judged-provisioner', true)).toEqual(wanted);
    const quotas = { apiGroups: [''], resources: ['resourcequotas'], verbs: ['list'] };
    expect(rulesOf('judged-bss', true)).toEqual([...wanted, quotas]);
  });

  it('policies and budgets of browsers are where these are', () => {
    const named = (name: string) => documents.find((text) => text.includes(`\n  name: ${name}\n`));
    for (const name of ['judged-browsers-in', 'judged-browsers-out', 'judged-sessions'])
      expect(named(name)).toContain(`\n  namespace: ${namespace}\n`);
    expect(documents.filter((text) => /^kind: Namespace$/m.test(text))).toHaveLength(
      namespace === 'elsewhere' ? 0 : 1,
    );
  });
});

it('with browsers in the release’s own namespace makes none', () => {
  const set = ['--set', 'browsers.image=b', '--set', `browsers.namespace.name=${testNamespace()}`];
  const { printed } = helm('template', 'judged', CHART, ...set, ...asOfServer());
  expect(printed).not.toMatch(/^kind: Namespace$/m);
});

it('refuses values that it does not know', () => {
  const wrong = ['--set', 'browsers.image=b', '--set', 'roles.api.replica=3'];
  const render = (...args: string[]) => helm('template', 'judged', CHART, ...args, ...asOfServer());
  expect(() => render(...wrong)).toThrow(/replica/);
  expect(() => render()).toThrow(/browsers.image/);
});

it('refuses what would give all callers one address', () => {
  const render = (...more: string[]) =>
    helm('template', 'judged', CHART, '--set', 'browsers.image=b', ...more, ...asOfServer());
  for (const front of ['ingress.enabled=true', 'httpRoute.enabled=true']) {
    expect(() => render('--set', front)).toThrow(/trustedProxies/);
    render('--set', front, '--set', 'trustedProxies=10.0.0.0/16');
  }
});

/** `helm template` asks no server for its version. */
function asOfServer(): string[] {
  const { serverVersion } = JSON.parse(kubectl('version', '--output', 'json')) as {
    serverVersion: { gitVersion: string };
  };
  return ['--kube-version', serverVersion.gitVersion];
}

type Rbac = {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: object[];
  subjects?: { name: string }[];
  roleRef?: { kind: string; name: string };
};

/** Objects of kinds that every API server has, as kubectl reads them. */
function read(objects: readonly string[]): Rbac[] {
  const { program, first, env } = kubectlCommand();
  // Each is of its own namespace, or of none.
  const at = first.indexOf('--namespace');
  const { status, stdout, stderr } = spawnSync(
    program,
    [...first.toSpliced(at, 2), 'create', '--dry-run=client', '-o', 'json', '-f', '-'],
    { input: objects.join('\n---\n'), encoding: 'utf8', env },
  );
  if (status !== 0) throw new Error(stderr);
  // One after the other.
  return stdout.split(/^(?=\{$)/m).map((text) => JSON.parse(text) as Rbac);
}

/** @returns the API server's warnings of objects; with `--dry-run=server` it stores none of them */
function apply(objects: readonly string[], ...options: string[]): string {
  const { program, first, env } = kubectlCommand();
  const { status, stderr } = spawnSync(program, [...first, 'apply', ...options, '-f', '-'], {
    input: objects.join('\n---\n'),
    encoding: 'utf8',
    env,
  });
  if (status !== 0) throw new Error(stderr);
  return stderr.trim();
}
