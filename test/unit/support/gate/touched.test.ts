import { describe, expect, it } from 'vitest';
import { touchedBy } from '#test/support/gate/touched.ts';

const cases: [test: string, changed: string][] = [
  ['test/e2e/start.real.test.ts', 'test/e2e/start.real.test.ts'],
  ['test/integration/gateway/shared-viewer.real.test.ts', 'src/roles/gateway/viewer/page.ts'],
  ['test/contract/messaging/leases.quiet.test.ts', 'src/kernel/messaging/nats/leases.ts'],
  ['test/contract/browsers/browsers.real.test.ts', 'src/browsers/docker/start.ts'],
  ['test/contract/gateway.real.test.ts', 'src/roles/gateway/serve.ts'],
  ['test/e2e/session.real.test.ts', 'src/kernel/domain/session/decide.ts'],
  ['test/integration/projections/outage.real.test.ts', 'projections/runner.ts'],
];

describe('a test is touched', () => {
  it.each(cases)('%s by a change of %s', (test, changed) => {
    expect(touchedBy(test, ['README.md', changed])).toBe(changed);
  });
});

describe('a test is not touched', () => {
  it.each([
    ['test/e2e/start.real.test.ts', 'test/e2e/other.real.test.ts'],
    ['test/e2e/start.real.test.ts', 'test/support/start/service.ts'],
    ['test/integration/gateway/shared-viewer.real.test.ts', 'src/gateway.ts'],
    ['test/e2e/clients/cli.real.test.ts', 'src/apps/client/client.ts'],
    ['test/e2e/src.real.test.ts', 'package.json'],
    ['test/integration/gateway/shared-viewer.real.test.ts', 'src/roles/gateway/vnc/README.md'],
  ])('%s by a change of %s', (test, changed) => {
    expect(touchedBy(test, [changed])).toBeNull();
  });
});
