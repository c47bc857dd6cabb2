import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, test } from 'vitest';
import { runCommand } from '#src/start/embedded/run-command.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { findPromtool } from '#test/support/servers/debian-programs.ts';
import { unknownMetrics } from '#test/support/service/metrics-document.ts';
import { readText } from '#test/support/sources/source-files.ts';

const RULES = 'deploy/prometheus/alerts.yaml';
const DASHBOARD = 'deploy/grafana/browser-session-service.json';
const CASES = 'test/integration/telemetry/alert-rules.yaml';
const CASES_OF_DAYS = 'test/integration/telemetry/alert-rules-of-days.yaml';
const TOP = fileURLToPath(new URL('../../..', import.meta.url));
type Panel = { targets?: { expr: string }[] };
const promtool = await findPromtool();

/** The text of each alert, by its name. */
const alerts = new Map(
  readText(RULES)
    .split(/^ +- alert: /m)
    .slice(1)
    .map((text) => [text.split('\n', 1)[0] ?? '', text]),
);

describe('deploy/prometheus/alerts.yaml', () => {
  it('has an alert for each metric that must not rise', () => {
    expect(alerts.size).toBeGreaterThan(10);
    for (const name of ['bss_leaked_browsers', 'bss_dead_letters', 'bss_redis_memory_bytes'])
      expect([...alerts.values()].filter((text) => text.includes(name))).not.toEqual([]);
  });

  it('names no metric that no process has', async () => {
    expect(await unknownMetrics(readText(RULES))).toEqual([]);
    expect(await unknownMetrics('max(bss_queue_lenght) > bss_queue_length')).toEqual([
      'bss_queue_lenght',
    ]);
  });

  test.each([...alerts])('%s says what is wrong, how bad it is, and what to do', (name, text) => {
    expect(name).toMatch(/^Bss[A-Za-z]+$/);
    expect(text).toMatch(/^ +summary: \S.+$/m);
    expect(text).toMatch(/^ +description: \S.+\.$/m);
    expect(text).toMatch(/severity: (?:page|ticket)/);
    expect(text).toContain(`runbook: deploy/runbook.md#${name.toLowerCase()}`);
    expect(readText('deploy/runbook.md')).toMatch(new RegExp(`^### ${name}$`, 'm'));
    expect(readText(CASES) + readText(CASES_OF_DAYS)).toContain(`alertname="${name}"`);
  });
});

/** Without promtool, test/support/summary.ts reports that these were left out. */
describe.runIf(promtool !== null)('promtool', () => {
  const run = (...args: string[]) =>
    runCommand([promtool ?? '', ...args], { timeoutMs: 600_000, cwd: TOP });

  it('accepts the rules', async () => {
    const { code, output } = await run('check', 'rules', RULES);
    expect([code, output]).toEqual([0, expect.stringContaining(`${alerts.size} rules found`)]);
  });

  it('accepts the expressions of the dashboard', async () => {
    await using folder = await scratchDir();
    const { panels } = JSON.parse(readText(DASHBOARD)) as { panels: Panel[] };
    const rules = panels
      .flatMap(({ targets = [] }) => targets)
      .map(({ expr }, at) => ({
        record: `rule_${at}`,
        expr: expr.replaceAll('$__rate_interval', '5m'),
      }));
    expect(rules.length).toBeGreaterThan(20);
    const file = `${folder.path}/dashboard.yaml`;
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { code, output } = await run('check', 'rules', file);
    expect([code, output]).toEqual([0, expect.stringContaining(`${rules.length} rules found`)]);
  });

  it('sees each alert fire for its fault, and none for a service that is well', async () => {
    const { code, output } = await run('test', 'rules', CASES, CASES_OF_DAYS);
    expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });

  it('fails where a threshold is another one', async () => {
    await using folder = await scratchDir();
    const changed = readText(RULES).replace('_age_seconds) > 60', '_age_seconds) > 50');
    await writeFile(`${folder.path}/alerts.yaml`, changed);
    const cases = readText(CASES).replace(/rule_files: .*/, 'rule_files: [alerts.yaml]');
    await writeFile(`${folder.path}/cases.yaml`, cases);
    const { code, output } = await run('test', 'rules', `${folder.path}/cases.yaml`);
    expect([code, output]).toEqual([1, expect.stringContaining('BssQueueWaits')]);
  });
});
