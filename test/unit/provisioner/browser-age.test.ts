import { expect, test } from 'vitest';
import { watchAge } from '#src/roles/provisioner/metrics.ts';
import { openMetrics } from '#src/kernel/telemetry/metrics.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 10, 23);

test('a provisioner exports the age of what it launches browsers from, by version', async () => {
  const metrics = openMetrics({ roles: 'provisioner', owners: ['provisioner'] });
  let build = { version: '150.0.7871.100', builtAt: NOW - 15 * DAY_MS };
  watchAge({ build: () => build }, metrics, () => NOW);
  expect(await metrics.text()).toContain(
    'bss_browser_age_seconds{version="150.0.7871.100"} 1296000\n',
  );
  build = { version: '151.0.7900.12', builtAt: NOW - DAY_MS };
  const text = await metrics.text();
  expect(text).toContain('bss_browser_age_seconds{version="151.0.7900.12"} 86400\n');
  expect(text).not.toContain('150.0.7871.100');
});

test('simulated browsers have no age', async () => {
  const metrics = openMetrics({ roles: 'provisioner', owners: ['provisioner'] });
  watchAge({ build: () => ({ version: 'simulated', builtAt: null }) }, metrics);
  expect(await metrics.text()).not.toMatch(/^bss_browser_age_seconds/m);
});
