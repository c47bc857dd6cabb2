import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { newAccountSeed, readIssuer } from '#src/features/nats-tenants/nkey.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { DEV_KEY, startService } from '#test/support/service/service.ts';
import { bssWith, newKey, untilAnswered } from '#test/support/clients/command-line.ts';
import { openWire } from '#test/support/clients/nats-tenant.ts';

/** A nats-server that its operator configured with deploy/nats-minimal.conf. */
test('tenants connect to a nats-server configured with deploy/nats-minimal.conf', async () => {
  const seed = newAccountSeed();
  const config = await readFile(
    new URL('../../../deploy/nats-minimal.conf', import.meta.url),
    'utf8',
  );
  await using nats = await startNats(
    config
      .replace('$SERVICE_PASSWORD', 'the-service-s-own')
      .replace('$ISSUER', readIssuer(seed)?.publicKey ?? ''),
  );
  const address = nats.url.replace('//', '//service:the-service-s-own@');
  const given = { NATS_URL: address, MASTER_KEY: 'm'.repeat(32) };
  await using service = await startService({ ...given, NATS_ISSUER_SEED: seed });
  expect(service.runtime.tenant_nats_url).toBe(nats.url);
  for (const user of ['live', 'durable']) {
    using wire = await openWire(service, { user, pass: DEV_KEY });
    expect(await wire.ask('')).toMatch(/^INFO [^]*PONG/);
    expect(await wire.publish('$JS.API.INFO')).toContain('Permissions Violation');
    using unauthenticated = await openWire(service, { user, pass: 'bss_dev_an-unknown-key' });
    expect(await unauthenticated.ask('')).toContain('-ERR');
  }

  // A key that is revoked while no service runs: its connections end when one does.
  const { api_key: key, key_id } = await newKey(service, 'dev', 'viewer');
  await untilAnswered(service, key, 200);
  using revoked = await openWire(service, { user: 'durable', pass: key });
  using kept = await openWire(service, { user: 'durable', pass: DEV_KEY });
  for (const wire of [revoked, kept]) expect(await wire.ask('')).toContain('PONG');
  await service.end('SIGKILL');
  expect((await bssWith({ NATS_URL: address }, 'keys', 'revoke', '--key', key_id)).code).toBe(0);
  // The server asks for a sign of life by itself, too.
  expect((await revoked.ask('')).replaceAll('PING\r\n', '')).toBe('PONG\r\n');
  await service.startAgain();
  await revoked.closed;
  expect(await kept.ask('')).toContain('PONG');
});

test('an issuer’s seed is parsed, and any other text is refused', () => {
  const seed = newAccountSeed();
  expect(seed).toMatch(/^SA[A-Z2-7]{56}$/);
  expect(readIssuer(seed)?.publicKey).toMatch(/^A[A-Z2-7]{55}$/);
  expect(readIssuer(seed)?.publicKey).toBe(readIssuer(seed)?.publicKey);
  const garbled = seed.slice(0, 20) + (seed[20] === 'A' ? 'B' : 'A') + seed.slice(21);
  for (const none of ['', 'SA', garbled, seed.toLowerCase(), seed.slice(1)])
    expect(readIssuer(none)).toBeNull();
  // A seed that NATS's own library has generated.
  const known = 'SAAFI7XCC7P63E26ZIWOH2WROOVOT6HT5NPP3BC6WEMLWS6Y7RXCK22HEU';
  const publicKey = 'ABYPDNB2FKMGVEUJTZVE67XRBUVZQDKJ6Z2QNYY6BCPJL2OAGOUKJOX3';
  expect(readIssuer(known)?.publicKey).toBe(publicKey);
});
