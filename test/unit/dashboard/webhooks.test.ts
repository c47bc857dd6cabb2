import { expect, test } from 'vitest';
import { givenUp, shownUrl, stateOf, type Webhook } from '#src/apps/dashboard/webhooks/webhook.ts';

const at = '2026-11-20T09:30:00.000Z';
const webhook: Webhook = {
  ...{ id: 'whk_1', url: 'https://user:pass@hooks.example.com:8443/bss?key=1', types: [] },
  ...{ disabled: null, failing_since: null, last_delivery: null, waiting: 0 },
};
const disabledFor = (reason: 'asked' | 'failing' | 'gone') => ({
  ...webhook,
  id: reason,
  disabled: { reason, detail: 'answered 500', at },
});

test('a webhook sends, fails, or is disabled for a reason', () => {
  expect(stateOf(webhook)).toBe('Sends');
  expect(stateOf({ ...webhook, failing_since: at })).toBe('Fails, and is tried again');
  expect(stateOf(disabledFor('failing'))).toBe(
    'Disabled after three days of failures (answered 500)',
  );
});

test('a webhook that the service has disabled is given up', () => {
  const webhooks = [webhook, ...(['asked', 'failing', 'gone'] as const).map(disabledFor)];
  expect(givenUp({ webhooks }).map(({ id }) => id)).toEqual(['failing', 'gone']);
});

test('of a URL neither credentials nor path are shown', () => {
  expect(shownUrl(webhook.url)).toBe('https://hooks.example.com:8443');
});
