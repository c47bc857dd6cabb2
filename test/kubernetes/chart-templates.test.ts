import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, describe } from 'vitest';
import { kubectl, kubectlCommand } from '#test/support/kubernetes/cluster.ts';
import { CHART, helm } from '#test/support/kubernetes/helm.ts';

/** The chart's templates, as helm and a real API server judge them. */

const EXAMPLES = join(CHART, 'examples');
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
    // The server admits a Pod only of an account that it has.
    apply(known.filter((text) => /^kind: ServiceAccount$/m.test(text)));
    expect(apply(known, '--dry-run=server')).toBe('');
  });
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
