import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { scratchDir } from '#test/support/scratch.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { failToStart } from '#test/support/service/main-process.ts';

/** A stack, or an error that says nothing of itself. */
const IS_BUG = /^ +at |^Error:|^TypeError:/m;

/** Further rows of `start.real.test.ts`. */
describe('a start that cannot succeed prints the reason and leaves no process:', () => {
  test.each(['XTIGERVNC', 'NATS_SERVER', 'REDIS_SERVER'])('no program at %s', async (variable) => {
    const outcome = await failToStart({ BROWSERS: 'process', [variable]: '/nonexistent/program' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`${variable}: /nonexistent/program is not a program`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('a nats-server that is too old', async () => {
    await using shelf = await scratchDir();
    const old = join(shelf.path, 'nats-server');
    await writeFile(old, '#!/bin/sh\necho nats-server: v2.10.20\n');
    await chmod(old, 0o755);
    const outcome = await failToStart({ NATS_SERVER: old });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`NATS_SERVER: ${old} is 2.10.20; 2.12 or later is required`);
  });

  const ports = ['PORT', 'GATEWAY_TLS_PORT', 'NATS_PORT', 'METRICS_PORT'];
  test.each(ports)('%s is taken', async (variable) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const outcome = await failToStart({ [variable]: `${port}` });
    other.close();
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`${variable}: 127.0.0.1:${port} is taken by another program`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('two configured ports are the same', async () => {
    const [port] = await freePorts(1);
    const outcome = await failToStart({ GATEWAY_PORT: `${port}`, GATEWAY_TLS_PORT: `${port}` });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`GATEWAY_TLS_PORT: 127.0.0.1:${port} is GATEWAY_PORT’s already`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('NATS_URL without MASTER_KEY', async () => {
    const outcome = await failToStart({ NATS_URL: 'nats://127.0.0.1:4222' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(/^MASTER_KEY: needed beside NATS_URL/);
  });

  test('browsers without isolation on an address of the network', async () => {
    const env = { BROWSERS: 'process', ROLES: 'provisioner', HOST: '0.0.0.0' };
    const outcome = await failToStart(env);
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(/BROWSERS: .* without isolation.*ALLOW_UNISOLATED=yes/);
  });
});
