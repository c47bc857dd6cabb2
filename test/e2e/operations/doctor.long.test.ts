import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Finding } from '#src/apps/doctor/finding.ts';
import { startNats, type RealNats } from '#test/support/servers/real-nats.ts';
import { startRedis, type RealRedis } from '#test/support/servers/real-redis.ts';
import { bssWith } from '#test/support/clients/command-line.ts';

let nats: RealNats;
let redis: RealRedis;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  [nats, redis] = await Promise.all([startNats(), startRedis()]);
  folder = await mkdtemp(join(tmpdir(), 'bss-doctor-'));
  env = {
    ...{ NATS_URL: nats.url, REDIS_URL: redis.url, DATA_DIR: folder },
    ...{ ROLES: 'projector', MASTER_KEY: 'Zp1uTgqk2o9mWcXa7LrVb4HsEyJ6dN0f', NODE_ENV: '' },
  };
});
afterAll(async () => {
  await nats?.[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** The doctor's exit code and findings. */
async function examine(more: Record<string, string> = {}, ...args: string[]) {
  const { code, stdout, stderr } = await bssWith({ ...env, ...more }, 'doctor', '--json', ...args);
  if (stdout === '') throw new Error(`the doctor ended with ${code}: ${stderr}`);
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  const of = (check: string) => findings.filter((finding) => finding.check === check);
  return { code, findings, of };
}

describe('the doctor', () => {
  it('creates missing streams with --fix, and then finds nothing bad', async () => {
    const { code, findings, of } = await examine({}, '--fix');
    expect(findings.filter(({ level }) => level === 'bad')).toEqual([]);
    expect(code).toBe(0);
    expect(of('log.streams').map(({ level }) => level)).toEqual(Array(8).fill('ok'));
    for (const check of ['host.node', 'log.version', 'log.clock', 'read-model.clock'])
      expect([check, of(check)[0]?.level]).toEqual([check, 'ok']);
  });

  it('reports a stream with changed settings, and --fix corrects them', async () => {
    await using nc = await connect({ servers: `127.0.0.1:${nats.port}` });
    const { streams } = await jetstreamManager(nc);
    await streams.update('EVENTS', { allow_direct: false });
    const found = await examine();
    expect(found.code).toBe(1);
    expect(found.of('log.streams')).toContainEqual(
      expect.objectContaining({ level: 'bad', what: expect.stringContaining('allow_direct') }),
    );
    expect((await examine({}, '--fix')).code).toBe(0);
    expect((await streams.info('EVENTS')).config.allow_direct).toBe(true);
  });

  it('reports an incompatible stream', async () => {
    await using nc = await connect({ servers: `127.0.0.1:${nats.port}` });
    const { streams } = await jetstreamManager(nc);
    await streams.delete('TIMERS');
    await streams.add({ name: 'TIMERS', subjects: ['tmr.>'], retention: 'workqueue' });
    const { code, of } = await examine();
    await streams.delete('TIMERS');
    expect(code).toBe(1);
    expect(of('log.streams')).toContainEqual(
      expect.objectContaining({ level: 'bad', what: expect.stringContaining('retention') }),
    );
    expect((await examine({}, '--fix')).code).toBe(0);
  });

  it('reports a Redis that may evict keys', async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, of } = await examine();
    await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    expect([code, of('read-model.eviction')[0]?.level]).toEqual([1, 'bad']);
  });

  it('reports a secret that other users may read, and a weak one', async () => {
    const file = join(folder, 'master-key');
    await writeFile(file, 'x', { mode: 0o600 });
    await chmod(file, 0o644);
    const MASTER_KEY = 'change-me-change-me-change-me-change-me';
    const { code, of } = await examine({ MASTER_KEY });
    await rm(file);
    expect([code, of('host.secret-files')[0]?.level]).toEqual([1, 'bad']);
    expect(of('secrets.strength')[0]).toMatchObject({ level: 'warn' });
  });

  it('reports the parts that do not answer, with their variables', async () => {
    const away = { NATS_URL: 'nats://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, of } = await examine(away);
    expect(code).toBe(1);
    for (const [check, variable] of Object.entries({ log: 'NATS_URL', 'read-model': 'REDIS_URL' }))
      expect(of(`${check}.answers`)[0]).toMatchObject({
        level: 'bad',
        advice: expect.stringContaining(variable),
      });
  });

  it('reports a chromedriver that is not of the version of Chromium', async () => {
    const processes = { ROLES: 'provisioner', BROWSERS: 'process', ALLOW_UNISOLATED: 'yes' };
    expect((await examine(processes)).of('browsers.driver')).toMatchObject([{ level: 'ok' }]);
    const CHROMEDRIVER = join(folder, 'driver');
    await writeFile(CHROMEDRIVER, '#!/bin/sh\necho ChromeDriver 1.2.3.4\n', { mode: 0o755 });
    const { code, of } = await examine({ ...processes, CHROMEDRIVER });
    expect(code).toBe(1);
    expect(of('browsers.driver')).toMatchObject([
      { level: 'bad', what: expect.stringContaining('chromedriver 1.2.3.4, Chromium') },
    ]);
    const none = { ...processes, CHROMEDRIVER: '/nowhere' };
    expect((await examine(none)).of('browsers.driver')).toMatchObject([{ level: 'warn' }]);
  });

  it('reports an invalid variable', async () => {
    const { code, findings } = await examine({ POOL_MAX: 'many' });
    expect([code, findings[0]?.what]).toEqual([1, expect.stringContaining('POOL_MAX')]);
  });
});
