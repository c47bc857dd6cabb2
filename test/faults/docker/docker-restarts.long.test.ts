import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attachPage,
  evaluate,
  openCdp,
  type Cdp,
} from '#test/support/browsers/browsers.fixture.ts';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';
import {
  createWarm,
  poolOf,
  reaches,
  readSession,
  type CreatedSession,
} from '#test/support/service/real-session.ts';

/**
 * The provisioner, a process of its own as in production, ended and started again while sessions
 * run on its Docker browsers; API, gateway and the rest go on in another process, whose own server
 * is drained.
 */
const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '4', QUEUE_AFTER: '200ms' },
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000 } }),
};
const WITHIN_MS = 60_000;

describe.runIf(hasDocker())('a provisioner that is restarted', () => {
  let service: RunningService;
  let provisioner: RunningService;
  let serverId: string;
  beforeAll(async () => {
    service = await startService(ENV);
    const [own] = await list();
    const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
    const place = { ROLES: 'provisioner', BROWSERS: 'docker', NATS_URL, REDIS_URL };
    provisioner = await startService({ ...ENV, ...place, DOCKER_NETWORK: testNetwork() });
    serverId = (await list()).find(({ server_id: id }) => id !== own?.server_id)?.server_id ?? '';
    await json(service, 'servers', 'drain', own?.server_id ?? '');
  });
  afterAll(async () => {
    // The last end of all is to leave nothing.
    await provisioner?.end('SIGTERM');
    await provisioner?.startAgain({ DOCKER_ON_SHUTDOWN: 'stop' });
    await provisioner?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('by %s keeps its sessions', async (signal) => {
    const kept = await createWarm(service);
    const stopped = await createWarm(service);
    using cdp = await attach(kept);
    const page = await attachPage(cdp);
    await evaluate(cdp, page, 'document.title = "from before"');
    await eventually(isWhole, 'a browser waits', WITHIN_MS);
    const before = containers();

    const code = await provisioner.end(signal);
    expect(code).toBe(signal === 'SIGTERM' ? 0 : null);
    expect(containers()).toEqual(before);
    expect(await evaluate(cdp, page, 'document.title')).toBe('from before');
    using again = await attach(kept);
    expect(await again.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
    await service.request('DELETE', `/api/sessions/${stopped.id}`);
    const asked = { prefer: 'respond-async' };
    const { body: waiting } = await service.request('POST', '/api/sessions', {}, asked);

    await provisioner.startAgain();
    await reaches(service, waiting.id, 'active', WITHIN_MS);
    await reaches(service, stopped.id, 'stopped', WITHIN_MS);
    expect(await readSession(service, kept.id)).toMatchObject({ status: 'active' });
    expect(await evaluate(cdp, page, 'document.title')).toBe('from before');
    await service.request('DELETE', `/api/sessions/${waiting.id}`);
    await service.request('DELETE', `/api/sessions/${kept.id}`);
    await eventually(
      () =>
        cdp.send('Browser.getVersion').then(
          () => false,
          () => true,
        ),
      'it ends',
    );
    for (const { id } of [kept, waiting]) await reaches(service, id, 'stopped', WITHIN_MS);
    await eventually(isWhole, 'one browser waits', WITHIN_MS);
    expect(containers()).toHaveLength(1);
    await auditLog(service);
  });

  test('and asked to end what it has, leaves nothing', async () => {
    const { id } = await createWarm(service);
    await provisioner.end('SIGTERM');
    await provisioner.startAgain({ DOCKER_ON_SHUTDOWN: 'stop' });
    expect(await readSession(service, id)).toMatchObject({ status: 'active' });
    expect(await provisioner.end('SIGTERM')).toBe(0);
    expect(containers()).toEqual([]);
    await reaches(service, id, 'stopped', WITHIN_MS);
    expect(await readSession(service, id)).toMatchObject({ ended_reason: 'operator' });
    expect(await ownServer()).toMatchObject({ status: 'left' });
    await provisioner.startAgain();
    await eventually(isWhole, 'a browser waits', WITHIN_MS);
  });

  async function list(): Promise<Server[]> {
    return (await json(service, 'servers', 'list', '--all')) as Server[];
  }
  async function ownServer(): Promise<Server | undefined> {
    return (await list()).find(({ server_id: id }) => id === serverId);
  }
  /** Ids of the server's containers. */
  function containers(): string[] {
    const label = `label=browser-session-service.server=${serverId}`;
    return docker('ps', '-aq', '--filter', label).split('\n').filter(Boolean).toSorted();
  }
  /** Nothing is amiss, and the engine has what the log has. */
  async function isWhole(): Promise<boolean> {
    const server = await ownServer();
    if (server?.status !== 'live' || server.leaked_browsers !== 0) return false;
    const { total, idle, busy } = await poolOf(service);
    if (server.leaked_sessions !== 0 || containers().length !== total) return false;
    return idle === 1 && total === (idle ?? 0) + (busy ?? 0);
  }
});

type Server = {
  server_id: string;
  status: string;
  leaked_browsers: number | null;
  leaked_sessions: number | null;
};

/** Through the gateway. */
function attach({ cdp_url }: CreatedSession): Promise<Cdp> {
  const { hostname, port, pathname } = new URL(cdp_url);
  return openCdp({ host: hostname, port: Number(port), path: pathname });
}
