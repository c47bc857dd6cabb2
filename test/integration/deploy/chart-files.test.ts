import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withParts } from '#test/support/deploy/generated-parts.ts';
import { natsParts } from '#test/support/deploy/nats-parts.ts';
import { ingressParts, nginxParts } from '#test/support/deploy/proxy-parts.ts';

/** Files of deploy/ that are written from tables of the product, and the chart's copies. */

const DEPLOY = new URL('../../../deploy/', import.meta.url);
const isWriting = process.env['UPDATE_GOLDEN'] === '1';
const WHY = 'out of date; run UPDATE_GOLDEN=1 npm test -- test/integration/deploy';

/** Each file with the parts of it that are written. */
const PARTS: Readonly<Record<string, () => Record<string, string[]>>> = {
  'nats.conf': natsParts,
  'nginx.conf': nginxParts,
  'helm/templates/ingress.yaml': ingressParts,
};
/** helm reads no file outside of its chart, and warns of links: it has copies. */
const COPIES: Readonly<Record<string, string>> = {
  'alerts.yaml': 'prometheus/alerts.yaml',
  'dashboard.json': 'grafana/browser-session-service.json',
  'nats.conf': 'nats.conf',
  'seccomp.json': 'browser/seccomp.json',
};

// Before the copies of them.
test.each(Object.entries(PARTS))('%s has what the tables say', (file, partsOf) => {
  const path = new URL(file, DEPLOY);
  const text = readFileSync(path, 'utf8');
  const wanted = withParts(text, partsOf());
  if (isWriting) writeFileSync(path, wanted);
  expect(readFileSync(path, 'utf8'), WHY).toBe(wanted);
});

test('the chart has copies of these files and of no other', () => {
  expect(readdirSync(new URL('helm/files/', DEPLOY)).toSorted()).toEqual(Object.keys(COPIES));
});

test.each(Object.entries(COPIES))('%s in the chart is %s', (copy, original) => {
  const text = readFileSync(new URL(original, DEPLOY), 'utf8');
  const path = new URL(`helm/files/${copy}`, DEPLOY);
  if (isWriting) writeFileSync(path, text);
  expect(readFileSync(path, 'utf8'), WHY).toBe(text);
});

test('a part that no table has, or that a file lacks, is refused', () => {
  const text = 'a\n  # begin one: why\n  old\n  # end one\nb\n';
  expect(withParts(text, { one: ['x', 'y'] })).toBe(
    'a\n  # begin one: why\n  x\n  y\n  # end one\nb\n',
  );
  expect(() => withParts(text, {})).toThrow('has the parts one');
  expect(() => withParts(text, { one: [], two: [] })).toThrow('not one, two');
});
