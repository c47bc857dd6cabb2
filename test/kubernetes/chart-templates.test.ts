import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, describe } from 'vitest';
import { kubectl } from '#test/support/kubernetes/cluster.ts';
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
    const { printed, warned } = helm('template', 'sessions', CHART, '--values', values);
    expect(warned).toBe('');
    const documents = printed.split(/^---$/m).filter((text) => /^kind:/m.test(text));
    const known = documents.filter((text) => !FOREIGN.test(text));
    expect(known.length).toBeGreaterThan(20);
    expect(applied(known.join('\n---\n'))).toBe('');
  });
});

it('refuses values that it does not know', () => {
  const wrong = ['--set', 'browsers.image=b', '--set', 'roles.api.replica=3'];
  expect(() => helm('template', 'sessions', CHART, ...wrong)).toThrow(/replica/);
  expect(() => helm('template', 'sessions', CHART)).toThrow(/browsers.image/);
});

/** Sends objects to the API server, which stores none. @returns its warnings */
function applied(objects: string): string {
  const [program = 'kubectl', ...first] = (process.env['TEST_KUBECTL'] ?? 'kubectl').split(' ');
  const args = [...first, 'apply', '--dry-run=server', '--namespace', namespace(), '-f', '-'];
  const { status, stderr } = spawnSync(program, args, { input: objects, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stderr.trim();
}

function namespace(): string {
  return kubectl('get', 'namespace', process.env['TEST_NAMESPACE'] ?? '', '-o', 'name').slice(
    'namespace/'.length,
  );
}
