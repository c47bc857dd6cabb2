import { afterEach, expect, test, vi } from 'vitest';
import { createConnections } from '#src/roles/gateway/connections/connections.ts';
import { defaultLimits } from '#src/roles/gateway/connections/limits.ts';

afterEach(() => void vi.useRealTimers());

const ticket = {
  epoch: 0,
  holder: null,
  grant: null,
  kind: 'cdp',
  organizationId: 'acme',
} as const;

test('the sweep runs while there are connections, and with the first one again', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const none = () => undefined;
  const hooks = { opened: none, closed: none, accessed: none };
  using connections = createConnections(defaultLimits, hooks, Date.now);
  const admit = (sessionId: string) => {
    const admitted = connections.admit({ ...ticket, sessionId });
    if (!('closed' in admitted)) throw new Error('refused');
    return admitted;
  };
  expect(vi.getTimerCount()).toBe(0);
  const [one, other] = [admit('one'), admit('other')];
  expect(vi.getTimerCount()).toBe(1);
  one.closed();
  expect(vi.getTimerCount()).toBe(1);
  other.closed();
  expect(vi.getTimerCount()).toBe(0);
  admit('again');
  expect(vi.getTimerCount()).toBe(1);
});
