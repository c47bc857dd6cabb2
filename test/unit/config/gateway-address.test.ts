import { expect, test } from 'vitest';
import { readConfig } from '#src/kernel/config/config.ts';

const internalUrl = (env: Record<string, string>): string =>
  readConfig({ BROWSERS: 'simulated', ...env }).gateway.internalUrl;

test('an API process asks the gateway of its own process, without TLS', () => {
  expect(internalUrl({})).toBe('http://127.0.0.1:8081');
  const everywhere = { HOST: '0.0.0.0', GATEWAY_PORT: '9081', ALLOW_UNISOLATED: 'yes' };
  const named = { PUBLIC_GATEWAY_WS_URL: 'wss://browsers.example' };
  expect(internalUrl({ ...everywhere, ...named })).toBe('http://127.0.0.1:9081');
});

test('an API process without a gateway asks the one that clients have', () => {
  const elsewhere = { ROLES: 'api', PUBLIC_GATEWAY_WS_URL: 'wss://browsers.example/gate/' };
  expect(internalUrl(elsewhere)).toBe('https://browsers.example/gate');
  expect(internalUrl({ ...elsewhere, GATEWAY_URL: 'http://gateway:8081/' })).toBe(
    'http://gateway:8081',
  );
});
