import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureBrowserImage, ensureRulesImage } from '#src/provisioner/browsers/docker/image.ts';
import { isFinal } from '#src/domain/session/session.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import { dockerHost, hasDocker } from '#test/support/servers/docker-engine.ts';
import { openSecondEngine, type SecondEngine } from '#test/support/servers/second-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';
import { poolOf } from '#test/support/service/real-session.ts';
import { watchFor } from '#test/support/service/watch-for.ts';

/**
 * A Docker engine, of this test alone, killed with -9 at steps of a session's life and started
 * again: within a minute everything is right. While it is away its containers run on; one that
 * does not restore live containers ends them when it is back. The service's own server is drained,
 * so that all sessions are on the killed engine.
 */

/** From the engine's return on, until nothing is amiss any more. */
const RIGHT_WITHIN_MS = 60_000;
const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '3', QUEUE_AFTER: '200ms' },
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 } }),
};
type Step = {
  type: string;
  isCold?: boolean;
  isStopped?: boolean;
  /** What may have become of the session: a status, or the reason of its end. */
  ends: readonly string[];
};

/** A browser that was there when the engine went has ended when it is back. */
const ended: Step[] = [
  { type: 'workload.launching', isCold: true, ends: ['active'] },
  { type: 'workload.idle', isCold: true, ends: ['active', 'browser_crashed'] },
  { type: 'session.activated', ends: ['browser_crashed'] },
  { type: 'session.stop-requested', isStopped: true, ends: ['user'] },
];
/** It runs on. */
const kept: Step[] = [
  { type: 'session.activated', ends: ['active'] },
  { type: 'session.stop-requested', isStopped: true, ends: ['user'] },
];

describe.runIf(hasDocker()).each([
  ['that ends its containers when it is back', [], ended],
  ['that keeps them', ['--live-restore'], kept],
] as [string, string[], Step[]][])('a Docker engine %s,', (_, options, steps) => {
  let engine: SecondEngine;
  let service: RunningService;
  let provisioner: RunningService;
  let serverId: string;
  beforeAll(async () => {
    const first = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
    const images = [
      await ensureBrowserImage(first, null, console.error),
      await ensureRulesImage(first, console.error),
    ];
    engine = await openSecondEngine(images, options);
    service = await startService(ENV);
    const [own] = await list();
    const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
    provisioner = await startService({
      ...ENV,
      ...{ ROLES: 'provisioner', BROWSERS: 'docker', NATS_URL, REDIS_URL },
      ...{ DOCKER_HOST: engine.host, DOCKER_PUBLISH: engine.address, DOCKER_ON_SHUTDOWN: 'stop' },
    });
    serverId = (await list()).find(({ server_id: id }) => id !== own?.server_id)?.server_id ?? '';
    await json(service, 'servers', 'drain', own?.server_id ?? '');
  });
  afterAll(async () => {
    await provisioner?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  test.each(steps)('killed at $type', async ({ type, isCold, isStopped, ends }) => {
    await eventually(isWaiting, 'a browser waits', RIGHT_WITHIN_MS);
    const { id, moment } = isStopped === true ? await stopAt(type) : await createAt(type, isCold);
    await moment;
    await engine.kill();
    await engine.restart();

    await eventually(allRight, 'nothing is amiss', RIGHT_WITHIN_MS);
    const { status, ended_reason: reason, cdp_url: url } = await read(id);
    expect(ends).toContain(status === 'active' ? status : reason);
    await auditLog(service);
    if (status !== 'active') return;
    const { hostname, port, pathname } = new URL(url);
    using cdp = await openCdp({ host: hostname, port: Number(port), path: pathname });
    expect(await evaluate(cdp, await attachPage(cdp), '6 * 7')).toBe(42);
    await service.request('DELETE', `/api/sessions/${id}`);
  });

  async function list(): Promise<Server[]> {
    return (await json(service, 'servers', 'list')) as Server[];
  }
  async function read(id: string) {
    return (await service.request('GET', `/api/sessions/${id}`)).body;
  }
  async function isWaiting(): Promise<boolean> {
    const { idle, busy } = await poolOf(service);
    return idle === 1 && busy === 0;
  }
  async function create(isCold = false): Promise<string> {
    const body = { duration: '1h', ...(isCold ? { locale: 'fr-FR' } : {}) };
    const headers = { prefer: 'respond-async' };
    const answer = await service.request('POST', '/api/sessions', body, headers);
    expect(answer.status).toBe(201);
    return answer.body.id as string;
  }
  /** `moment` resolves at the event that the session's creation leads to. */
  async function createAt(type: string, isCold?: boolean) {
    const { come } = await watchFor(service, type, serverId);
    return { id: await create(isCold), moment: come };
  }
  async function stopAt(type: string) {
    const id = await create();
    await eventually(async () => (await read(id)).status === 'active', `${id} is active`);
    const { come: moment } = await watchFor(service, type, serverId);
    await service.request('DELETE', `/api/sessions/${id}`);
    return { id, moment };
  }
  /** Of the server's browsers. */
  function containers(...which: string[]): number {
    const label = `label=browser-session-service.server=${serverId}`;
    return engine
      .docker('ps', ...which, '--filter', label)
      .split('\n')
      .filter(Boolean).length;
  }
  /** Gauges are 0, and log, read model and engine have the same sessions and browsers. */
  async function allRight(): Promise<boolean> {
    const server = (await list()).find(({ server_id: id }) => id === serverId);
    if (server?.status !== 'live') return false;
    if (server.leaked_browsers !== 0 || server.leaked_sessions !== 0) return false;
    const { sessions } = await auditLog(service);
    const states = [...sessions.values()].map(({ state }) => state);
    if (!states.every(({ status }) => status === 'active' || isFinal(status))) return false;
    const active = states.filter(({ status }) => status === 'active').length;
    const { total, idle, busy } = await poolOf(service);
    if (containers('-aq') !== total || containers('-q') !== total) return false;
    return busy === active && idle === 1 && total === idle + busy;
  }
});

type Server = {
  server_id: string;
  status: string;
  leaked_browsers: number | null;
  leaked_sessions: number | null;
};
