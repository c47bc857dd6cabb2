import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { errors } from '#src/kernel/errors.ts';
import { families, type Family } from '#src/kernel/telemetry/metric-families.ts';
import { refuseMetrics } from '#src/kernel/telemetry/metrics-access.ts';
import { openMetrics } from '#src/kernel/telemetry/metrics.ts';
import { metricsDocument, UNEXPLAINED } from '#test/support/service/metrics-document.ts';
import { parseMetrics } from '#test/support/service/metrics-text.ts';

const DOCUMENT = new URL('../../../deploy/metrics.md', import.meta.url);
const everyOwner = [
  ...(['service', 'api', 'gateway', 'provisioner', 'projector', 'webhooks'] as const),
];
const table = Object.entries<Family>(families);

describe('the metrics of a process with all roles', () => {
  test('are those of the table with their help texts, and the default process metrics', async () => {
    const exported = parseMetrics(await openMetrics({ roles: 'all', owners: everyOwner }).text());
    for (const [name, { help, kind }] of table)
      expect(exported.get(name), name).toMatchObject({ name, help, type: kind });
    const others = [...exported.keys()].filter((name) => !(name in families));
    expect(others.length).toBeGreaterThan(10);
    for (const name of others) expect(name).toMatch(/^(process|nodejs)_/);
  });

  test('follow Prometheus naming: unit suffixes, and _total for counters', () => {
    for (const [name, { kind, label }] of table) {
      expect(name).toMatch(/^bss_[a-z]+(_[a-z]+)*$/);
      expect(name.endsWith('_total'), name).toBe(kind === 'counter');
      if (kind === 'histogram') expect(name).toMatch(/_seconds$/);
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb|minutes)(_|$)/);
      expect(label?.name ?? '').not.toMatch(/id|org|user|session|key|path|url/);
    }
  });

  test('start at 0 for each label value, so that the first increment is visible', async () => {
    const metrics = openMetrics({ roles: 'all', owners: everyOwner });
    metrics.refused('NO_SERVERS_AVAILABLE');
    const { samples } = parseMetrics(await metrics.text()).get('bss_refusals_total') ?? {
      samples: [],
    };
    const counted = Object.fromEntries(
      samples.map(({ labels, value }) => [labels['error'], value]),
    );
    const none = Object.fromEntries(Object.keys(errors).map((error) => [error, 0]));
    expect(counted).toEqual({ ...none, NO_SERVERS_AVAILABLE: 1 });
  });

  test('are NaN, not stale, while their source is unavailable', async () => {
    const metrics = openMetrics({ roles: 'all', owners: everyOwner });
    let isAway = false;
    metrics.watch(['bss_queue_length', 'bss_pool_browsers'], async () => {
      if (isAway) throw new Error('away');
      return { bss_queue_length: 3, bss_pool_browsers: { idle: 2 } };
    });
    const exported = async () => {
      const all = parseMetrics(await metrics.text());
      return [...(all.get('bss_queue_length')?.samples ?? [])].map(({ value }) => value);
    };
    expect(await exported()).toEqual([3]);
    isAway = true;
    expect(await exported()).toEqual([Number.NaN]);
  });

  test('leave out those of other roles, and ignore their counts', async () => {
    const metrics = openMetrics({ roles: 'gateway', owners: ['gateway'] });
    metrics.refused('INTERNAL');
    metrics.sessionStarted('warm');
    metrics.createPhase('first_cdp', 12);
    const exported = parseMetrics(await metrics.text());
    const own = table.filter(([, { of }]) => of.includes('gateway') || of.includes('process'));
    const names = [...exported.keys()].filter((name) => name.startsWith('bss_'));
    expect(names.toSorted()).toEqual(own.map(([name]) => name).toSorted());
    const count = exported
      .get('bss_create_phase_seconds')
      ?.samples.find(({ name }) => name.endsWith('_count'));
    expect(count).toMatchObject({ labels: { phase: 'first_cdp' }, value: 1 });
  });
});

/** `UPDATE_GOLDEN=1` updates its rows; the explanation of a metric's changes is written by hand. */
test('deploy/metrics.md has a row for each metric that explains its changes', () => {
  const current = readFileSync(DOCUMENT, 'utf8');
  const expectedDocument = metricsDocument(current);
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(DOCUMENT, expectedDocument);
  else expect(current).toBe(expectedDocument);
  expect(expectedDocument).not.toContain(UNEXPLAINED);
});

describe('access to the metrics', () => {
  const token = 'token-of-the-scraper-0123456789';

  test.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])(
    'without a token, a client at %s',
    (address) => expect(refuseMetrics({ address, headers: {} }, null)).toBeNull(),
  );

  test.each([undefined, '', '10.0.0.1', '128.0.0.1', '::ffff:10.0.0.1', 'fe80::1', '::2'])(
    'without a token, a client at %s gets NOT_FOUND',
    (address) => expect(refuseMetrics({ address, headers: {} }, null)?.code).toBe('NOT_FOUND'),
  );

  test.each(['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'])(
    'without a token, a proxied request (%s) gets NOT_FOUND',
    (header) => {
      const headers = { [header]: '10.0.0.1' };
      expect(refuseMetrics({ address: '127.0.0.1', headers }, null)?.code).toBe('NOT_FOUND');
    },
  );

  test.each([
    ['127.0.0.1:9000', 'admitted'],
    ['[::1]:9000', 'admitted'],
    ['localhost', 'admitted'],
    ['API.localhost:80', 'admitted'],
    ['browsers.example:8080', 'admitted'],
    ['evil.example', 'NOT_FOUND'],
    ['browsers.example.evil.example', 'NOT_FOUND'],
    ['localhost.evil.example', 'NOT_FOUND'],
    ['127.0.0.1.evil.example', 'NOT_FOUND'],
    ['', 'NOT_FOUND'],
  ])('without a token, a client on this machine that asks by %s', (host, result) => {
    const request = { address: '127.0.0.1', headers: { host } };
    const refusal = refuseMetrics(request, null, ['browsers.example']);
    expect(refusal?.code ?? 'admitted').toBe(result);
  });

  test('with a token, only requests with it are answered, from any address', () => {
    const ask = (address: string, authorization?: string) =>
      refuseMetrics({ address, headers: { authorization } }, token)?.code ?? 'admitted';
    expect(ask('10.0.0.1', `Bearer ${token}`)).toBe('admitted');
    expect(ask('127.0.0.1', `bearer ${token}`)).toBe('admitted');
    for (const wrong of [undefined, '', token, `Basic ${token}`, `Bearer ${token}x`, 'Bearer '])
      expect(ask('127.0.0.1', wrong)).toBe('UNAUTHORIZED');
  });
});
