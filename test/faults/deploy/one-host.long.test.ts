import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTopology, type Topology } from '#test/support/service/compose-topology.ts';
import { docker, hasDocker } from '#test/support/servers/docker-engine.ts';
import { eventually } from '#test/support/service/service.ts';

const WITHIN_MS = 60_000;

describe.runIf(hasDocker())('the service on one host, started by deploy/up.sh', () => {
  let topology: Topology;
  beforeAll(async () => {
    topology = await startTopology('single', { POOL_MIN_IDLE: '1', POOL_MAX: '2' });
  }, 600_000);
  afterAll(() => topology?.[Symbol.asyncDispose](), 300_000);

  it('creates a session, drives it over TLS and ends it', async () => {
    const { status, body } = await topology.request('POST', '/api/sessions', { duration: '1h' });
    expect([status, body.status]).toEqual([201, 'active']);
    expect(body.cdp_url.startsWith(`${topology.prefix}/devtools/browser/`)).toBe(true);
    // The address of the host on the inner network, not of the container.
    expect(body.autoscaler_server_ip).toMatch(/^10\.214\.\d+\.1$/);
    const driver = await topology.open(body.cdp_url);
    driver.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
    const [said] = (await once(driver, 'message')) as [Buffer];
    expect(JSON.parse(said.toString())).toMatchObject({
      result: { product: expect.stringContaining('Chrome') },
    });
    const closed = once(driver, 'close');
    await topology.request('DELETE', `/api/sessions/${body.id}`);
    await closed;
  });

  it('keeps its sessions while its containers are replaced', async () => {
    const kept = await topology.request('POST', '/api/sessions', { duration: '1h' });
    expect([kept.status, kept.body.status]).toEqual([201, 'active']);
    for (const part of ['nats', 'redis', 'service']) await topology.replace(part);
    const read = () => topology.request('GET', `/api/sessions/${kept.body.id}`).catch(() => null);
    const isActive = async () => (await read())?.body.status === 'active';
    await eventually(isActive, 'the session goes on', WITHIN_MS);
    const listed = await topology.request('GET', '/api/sessions?limit=100');
    expect(listed.body.total).toBe(2);
    await topology.bss('audit', 'ledger');
    await topology.bss('projections', 'verify');
    await topology.request('DELETE', `/api/sessions/${kept.body.id}`);
    await eventually(() => browsersOfSessions() === 0, 'its browser is gone', WITHIN_MS);
  });

  it('passes the doctor', async () => {
    const { findings } = (await topology.bss('doctor')) as { findings: { level: string }[] };
    expect(findings.filter(({ level }) => level === 'bad')).toEqual([]);
  });

  it('is brought up with its address and the commands for a first key', () => {
    expect(topology.said).toMatch(/^The service is at https:\/\/localhost:\d+$/m);
    expect(topology.said).toMatch(/bss-single orgs create/);
    expect(topology.said).toMatch(/bss-single keys issue/);
  });

  it('is ended by deploy/down.sh with all of its browsers', async () => {
    await topology.request('POST', '/api/sessions', { duration: '1h' });
    expect(browsersOfSessions()).toBe(1);
    await topology.down();
    const onNetwork = ['--filter', `network=${topology.sessionsNetwork}`];
    expect(docker('ps', '-aq', ...onNetwork)).toBe('');
    expect(docker('network', 'ls', '-q', '--filter', `name=${topology.sessionsNetwork}`)).toBe('');
  });

  /** Number of containers that are named after a session. */
  function browsersOfSessions(): number {
    const filter = ['--filter', `network=${topology.sessionsNetwork}`];
    const names = docker('ps', '-a', ...filter, '--format', '{{.Names}}').split('\n');
    return names.filter((name) => name.includes('.ses_')).length;
  }
});
