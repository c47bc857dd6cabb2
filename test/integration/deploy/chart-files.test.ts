import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** helm reads no file outside of its chart, and warns of links: it has copies. */

const DEPLOY = new URL('../../../deploy/', import.meta.url);
const COPIES: Readonly<Record<string, string>> = {
  'alerts.yaml': 'prometheus/alerts.yaml',
  'dashboard.json': 'grafana/browser-session-service.json',
  'nats.conf': 'nats.conf',
  'seccomp.json': 'browser/seccomp.json',
};

test('the chart has copies of these files and of no other', () => {
  expect(readdirSync(new URL('helm/files/', DEPLOY)).toSorted()).toEqual(Object.keys(COPIES));
});

test.each(Object.entries(COPIES))('%s in the chart is %s', (copy, original) => {
  const text = readFileSync(new URL(original, DEPLOY), 'utf8');
  const path = new URL(`helm/files/${copy}`, DEPLOY);
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(path, text);
  const why = 'out of date; run UPDATE_GOLDEN=1 npm test -- test/integration/deploy';
  expect(readFileSync(path, 'utf8'), why).toBe(text);
});
