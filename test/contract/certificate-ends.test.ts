import { X509Certificate } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { readCertificateEnds } from '#src/start/certificate-facts.ts';
import type { Config } from '#src/kernel/config/config.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { makeCertificate } from '#test/support/servers/certificates.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { startSecureRedis } from '#test/support/servers/real-redis.ts';

test('the ends of certificates are those of the files, and those that NATS and Redis show', async () => {
  await using folder = await scratchDir();
  const made = async (name: string) => {
    const files = await makeCertificate(folder.path, name);
    const end = new X509Certificate(await readFile(files.cert)).validToDate.getTime();
    return { ...files, end };
  };
  const [server, client, tls] = [await made('server'), await made('client'), await made('tls')];
  await using nats = await startNats(
    `tls { cert_file: "${server.cert}", key_file: "${server.key}", timeout: 5 }`,
  );
  await using redis = await startSecureRedis(server, { user: 'bss', password: 'hunter2-hunter2' });
  const config = {
    dataDir: folder.path,
    roles: ['api', 'gateway'],
    incoming: { certificate: { certFile: tls.cert, keyFile: tls.key }, trustedProxies: [] },
    nats: { tls: { caFile: server.cert, certFile: client.cert, keyFile: client.key } },
    redisTls: { caFile: `${server.cert}.missing` },
  } as unknown as Config;
  const addresses = {
    natsUrl: `tls://api:secret@127.0.0.1:${nats.port},tls://127.0.0.1:1`,
    redisUrl: `rediss://127.0.0.1:${redis.port}`,
  };
  expect(await readCertificateEnds(config, addresses)).toEqual({
    tls: tls.end,
    nats_client: client.end,
    nats_ca: server.end,
    nats_server: server.end,
    redis_ca: null,
    redis_server: server.end,
  });

  // Of an authority and the one before it the last to end counts.
  await appendFile(server.cert, await readFile(tls.cert));
  const both = await readCertificateEnds(config, addresses);
  expect(both['nats_ca']).toBe(Math.max(server.end, tls.end));
  const plain = { ...config, incoming: { certificate: null, trustedProxies: [] }, redisTls: null };
  expect(
    await readCertificateEnds({ ...plain, nats: { tls: null } } as unknown as Config, {
      natsUrl: 'nats://127.0.0.1:1',
      redisUrl: 'redis://127.0.0.1:1',
    }),
  ).toEqual({ gateway: null });
});
