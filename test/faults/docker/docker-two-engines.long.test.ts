import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import Docker from 'dockerode';
import { ensureBrowserImage } from '#src/browsers/docker/browser-image.ts';
import { ensureRulesImage } from '#src/browsers/docker/image.ts';
import { docker, dockerHost, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { openSecondEngine } from '#test/support/servers/second-engine.ts';
import type { SecondEngine } from '#test/support/servers/second-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp } from '#test/support/browsers/browsers.fixture.ts';
import { json } from '#test/support/clients/command-line.ts';
import type { CreatedSession } from '#test/support/service/real-session.ts';

const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  BROWSERS: 'docker',
  POOL_MIN_IDLE: '0',
  POOL_MAX_IDLE: '0',
  POOL_MAX: '1',
  QUEUE_AFTER: '500ms',
  CREATE_WAIT: '60s',
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
};

describe.runIf(hasDocker())('two servers, each with an engine of its own', () => {
  let engine: SecondEngine;
  let service: RunningService;
  let second: RunningService;
  let here: string;
  let there: string;
  beforeAll(async () => {
    const first = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
    const images = [
      await ensureBrowserImage(first, null, console.error),
      await ensureRulesImage(first, console.error),
    ];
    engine = await openSecondEngine(images);
    // Networks with the same name on both engines, each with rules of its own.
    const env = { ...ENV, DOCKER_NETWORK: testNetwork() };
    service = await startService(env);
    [here = ''] = await serverIds();
    const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
    second = await startService({
      ...env,
      ...{ ROLES: 'provisioner', NATS_URL, REDIS_URL, DOCKER_ON_SHUTDOWN: 'stop' },
      ...{ DOCKER_HOST: engine.host, DOCKER_PUBLISH: engine.address },
    });
    there = (await serverIds()).find((id) => id !== here) ?? '';
  });
  afterAll(async () => {
    await second?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  async function serverIds(): Promise<string[]> {
    const listed = (await json(service, 'servers', 'list')) as { id: string }[];
    return listed.map(({ id }) => id);
  }

  async function create(): Promise<CreatedSession> {
    const answer = await service.request('POST', '/api/sessions', {});
    expect([answer.status, answer.body.status]).toEqual([201, 'active']);
    return answer.body as CreatedSession;
  }

  async function read({ id }: { id: string }): Promise<Record<string, unknown>> {
    const { body } = await service.request('GET', `/api/sessions/${id}`);
    return body as Record<string, unknown>;
  }

  async function end({ id }: { id: string }): Promise<void> {
    await service.request('DELETE', `/api/sessions/${id}`);
    await eventually(async () => (await read({ id }))['status'] === 'stopped', 'it has stopped');
  }

  function attach({ cdp_url }: CreatedSession): Promise<Cdp> {
    const { hostname, port, pathname } = new URL(cdp_url);
    return openCdp({ host: hostname, port: Number(port), path: pathname });
  }

  /** How many containers each engine has of its server's. */
  function containers(): number[] {
    const of = (id: string) => [
      'ps',
      '-q',
      '--filter',
      `label=browser-session-service.server=${id}`,
    ];
    const count = (listed: string) => listed.split('\n').filter(Boolean).length;
    return [count(docker(...of(here))), count(engine.docker(...of(there)))];
  }

  test('share the sessions, and one gateway proxies to both', async () => {
    const sessions = await Promise.all([create(), create()]);
    expect(containers()).toEqual([1, 1]);
    for (const session of sessions) {
      using cdp = await attach(session);
      expect(await evaluate(cdp, await attachPage(cdp), '6 * 7')).toBe(42);
    }
    await Promise.all(sessions.map(end));
    await eventually(() => containers().join() === '0,0', 'no container is left');
  });

  test('get no new session while they are drained, and keep those they have', async () => {
    const sessions = await Promise.all([create(), create()]);
    await json(service, 'servers', 'drain', there);
    for (const session of sessions) expect(await read(session)).toMatchObject({ status: 'active' });
    await Promise.all(sessions.map(end));
    await eventually(() => containers().join() === '0,0', 'no container is left');
    const next = await create();
    expect(containers()).toEqual([1, 0]);
    await end(next);
    await json(service, 'servers', 'undrain', there);
  });

  test('that are lost fail exactly their own sessions, and the queue goes on', async () => {
    const sessions = await Promise.all([create(), create()]);
    const asked = await service.request('POST', '/api/sessions', {}, { prefer: 'respond-async' });
    const waiting = asked.body as { id: string };
    await second.end('SIGKILL');
    const failed = await eventually(async () => {
      const states = await Promise.all(sessions.map(read));
      return states.some(({ status }) => status === 'failed') && states;
    }, 'a session has failed');
    expect(failed.map(({ status }) => status).toSorted()).toEqual(['active', 'failed']);
    expect(failed.find(({ status }) => status === 'failed')).toMatchObject({
      ended_reason: 'server_lost',
    });
    const alive = sessions.find((_, index) => failed[index]?.['status'] === 'active');
    if (alive === undefined) throw new Error('no session is left');
    await end(alive);
    await eventually(
      async () => (await read(waiting))['status'] === 'active',
      'the queued session has the browser',
    );
    await end(waiting);
    // The containers that it left are removed when it comes back.
    await second.startAgain();
    await eventually(() => containers().join() === '0,0', 'no container is left');
  });
});
