import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attachPage,
  evaluate,
  openCdp,
  type Cdp,
} from '#test/support/browsers/browsers.fixture.ts';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { eventually, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';
import {
  startSplitService,
  type ServerRow,
  type SplitService,
} from '#test/support/service/split-service.ts';
import {
  createWarm,
  reaches,
  readSession,
  type CreatedSession,
} from '#test/support/service/real-session.ts';

/**
 * The provisioner is stopped or killed and started again while sessions run on its Docker browsers;
 * API, gateway and the rest go on in another process.
 */
const POOL = {
  ...{ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '4', QUEUE_AFTER: '200ms' },
  // The second of two creates may have to wait for a launch.
  CREATE_WAIT: '2m',
};
const WITHIN_MS = 60_000;

describe.runIf(hasDocker())('a restart of the provisioner', () => {
  let split: SplitService;
  let service: RunningService;
  let provisioner: RunningService;
  beforeAll(async () => {
    split = await startSplitService(POOL, { BROWSERS: 'docker', DOCKER_NETWORK: testNetwork() });
    ({ main: service, provisioner } = split);
  });
  afterAll(async () => {
    // By default containers outlive the provisioner: the last stop removes them.
    await provisioner?.end('SIGTERM');
    await provisioner?.startAgain({ DOCKER_ON_SHUTDOWN: 'stop' });
    await split?.[Symbol.asyncDispose]();
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('by %s keeps its sessions', async (signal) => {
    const kept = await createWarm(service);
    const stopped = await createWarm(service);
    using cdp = await attach(kept);
    const page = await attachPage(cdp);
    await evaluate(cdp, page, 'document.title = "from before"');
    await split.untilConsistent({ containers: count, idle: 1 });
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
    await split.untilConsistent({ containers: count, idle: 1 });
    expect(containers()).toHaveLength(1);
    await auditLog(service);
  });

  test('with DOCKER_ON_SHUTDOWN=stop ends its sessions and removes their containers', async () => {
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
    await split.untilConsistent({ containers: count, idle: 1 });
  });

  /** The row of the server, also after it has left. */
  async function ownServer(): Promise<ServerRow | undefined> {
    const rows = (await json(service, 'servers', 'list', '--all')) as ServerRow[];
    return rows.find(({ id }) => id === split.serverId);
  }
  /** Ids of the server's containers. */
  function containers(): string[] {
    const label = `label=browser-session-service.server=${split.serverId}`;
    return docker('ps', '-aq', '--filter', label).split('\n').filter(Boolean).toSorted();
  }
  function count(): number[] {
    return [containers().length];
  }
});

/** Opens the session's CDP address, through the gateway. */
function attach({ cdp_url }: CreatedSession): Promise<Cdp> {
  const { hostname, port, pathname } = new URL(cdp_url);
  return openCdp({ host: hostname, port: Number(port), path: pathname });
}
