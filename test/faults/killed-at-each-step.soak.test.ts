import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isFinal } from '#src/domain/session/session.ts';
import { docker, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';
import { watchFor } from '#test/support/service/watch-for.ts';

/**
 * A provisioner, the event log, the read model and the containers of Docker browsers, each killed
 * with -9 at each step of a session's life: within a minute everything is right again. The
 * provisioner is a process of its own; the service's other one is drained, so that all sessions are
 * the killed one's.
 */

/** From the kill on, until nothing is amiss any more. */
const RIGHT_WITHIN_MS = 60_000;
const ENV = {
  MASTER_KEY: 'the-same-in-every-process-of-the-service',
  ...{ POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1', POOL_MAX: '3', QUEUE_AFTER: '200ms' },
  SIMULATED_LAUNCH_MS: '400ms',
  TIERS: JSON.stringify({ max: { requests_per_minute: 1_000_000, concurrent_sessions: 1e5 } }),
};
type Target = 'provisioner' | 'nats' | 'redis' | 'containers';
type Ends = 'active' | 'server_lost' | 'user' | 'browser_crashed';

/** The event at which it is killed, whether a browser waits for it, and what may become of it. */
const steps: [string, { isCold: boolean; isStopped: boolean; killed: readonly Ends[] }][] = [
  ['session.requested', { isCold: false, isStopped: false, killed: ['active', 'server_lost'] }],
  ['session.assigned', { isCold: true, isStopped: false, killed: ['active'] }],
  ['workload.launching', { isCold: true, isStopped: false, killed: ['active'] }],
  ['workload.idle', { isCold: true, isStopped: false, killed: ['active', 'server_lost'] }],
  ['session.activated', { isCold: false, isStopped: false, killed: ['server_lost'] }],
  ['session.stop-requested', { isCold: false, isStopped: true, killed: ['user'] }],
  ['workload.terminating', { isCold: false, isStopped: true, killed: ['user'] }],
];

describe.each([
  ['provisioner', 'simulated'],
  ['provisioner', 'process'],
  ['nats', 'simulated'],
  ['redis', 'simulated'],
  ...(hasDocker() ? [['provisioner', 'docker'] as const, ['containers', 'docker'] as const] : []),
] as [Target, string][])('the %s, with %s browsers,', (target, browsers) => {
  let service: RunningService;
  let provisioner: RunningService;
  let serverId: string;

  beforeAll(async () => {
    service = await startService(ENV);
    const [own] = await list();
    const { nats_url: NATS_URL, redis_url: REDIS_URL } = service.runtime;
    const place = { ROLES: 'provisioner', BROWSERS: browsers, NATS_URL, REDIS_URL };
    const ending = { DOCKER_ON_SHUTDOWN: 'stop', DOCKER_NETWORK: testNetwork() };
    provisioner = await startService({ ...ENV, ...place, ...ending });
    serverId = (await list()).find(({ server_id: id }) => id !== own?.server_id)?.server_id ?? '';
    await json(service, 'servers', 'drain', own?.server_id ?? '');
  });
  afterAll(async () => {
    await provisioner?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  test.each(steps)('killed at %s', async (type, { isCold, isStopped, killed }) => {
    await eventually(isWaiting, 'a browser waits', RIGHT_WITHIN_MS);
    const losses = await lossesOfServer();
    const { id, moment } = isStopped ? await stopAt(type) : await createAt(type, isCold);
    await moment;
    await kill();

    const end = await eventually(
      async () => {
        const { status, ended_reason: reason } = await read(id);
        return status === 'active' ? status : (reason as string | null);
      },
      `${id} is right`,
      RIGHT_WITHIN_MS,
    );
    const expected: readonly Ends[] = isStopped ? ['user'] : expectedOf(type, killed);
    // On a busy machine a restart may take longer than the server's lease lasts: then it was lost.
    const wasLost = end === 'server_lost' && (await lossesOfServer()) > losses;
    expect(wasLost ? [...expected, 'server_lost'] : expected).toContain(end);
    await eventually(allRight, 'nothing is amiss', RIGHT_WITHIN_MS);
    await auditLog(service);
    if (end === 'active') await service.request('DELETE', `/api/sessions/${id}`);
  });

  /** Docker browsers outlive their service, and die alone. */
  function expectedOf(type: string, killed: readonly Ends[]): readonly Ends[] {
    if (target === 'containers') return ['active', 'browser_crashed'];
    if (target !== 'provisioner' || (browsers === 'docker' && type === 'session.activated'))
      return ['active'];
    return killed;
  }
  /** The containers of the server's browsers. */
  function containers(): string[] {
    const label = `label=browser-session-service.server=${serverId}`;
    return docker('ps', '-aq', '--filter', label).split('\n').filter(Boolean);
  }
  /** How often the log says that the server was lost. */
  async function lossesOfServer(): Promise<number> {
    const history = (await json(service, 'servers', 'history', serverId)) as { type: string }[];
    return history.filter(({ type }) => type === 'server.lost').length;
  }
  async function list(): Promise<Server[]> {
    return (await json(service, 'servers', 'list')) as Server[];
  }
  /** `moment` resolves at the event that the session's creation leads to. */
  async function createAt(type: string, isCold: boolean) {
    const { come } = await watchFor(service, type, serverId);
    return { id: await create(isCold), moment: come };
  }
  async function stopAt(type: string) {
    const id = await create(false);
    await eventually(async () => (await read(id)).status === 'active', `${id} is active`);
    const { come: moment } = await watchFor(service, type, serverId);
    // Whether this is answered depends on who is killed.
    void service.request('DELETE', `/api/sessions/${id}`).catch(() => undefined);
    return { id, moment };
  }
  /** Asked again while a part that was killed is away. */
  async function ask(path: string) {
    return eventually(
      async () => {
        const answer = await service.request('GET', path).catch(() => null);
        return answer !== null && answer.status < 500 && answer.body;
      },
      `${path} is answered`,
      RIGHT_WITHIN_MS,
    );
  }
  const read = (id: string) => ask(`/api/sessions/${id}`);

  async function isWaiting(): Promise<boolean> {
    const { idle, busy } = (await ask('/api/status')).autoscaler.pool_status;
    return idle > 0 && busy === 0;
  }
  async function create(isCold: boolean): Promise<string> {
    const body = { duration: '1h', ...(isCold ? { locale: 'fr-FR' } : {}) };
    const headers = { prefer: 'respond-async', 'idempotency-key': crypto.randomUUID() };
    return eventually(
      async () => {
        const answer = await service
          .request('POST', '/api/sessions', body, headers)
          .catch(() => null);
        return answer?.status === 201 && (answer.body.id as string);
      },
      'a session is created',
      RIGHT_WITHIN_MS,
    );
  }
  async function kill(): Promise<void> {
    if (target === 'containers') return containers().forEach(killContainer);
    if (target !== 'provisioner') return killPart(service, target);
    await provisioner.end('SIGKILL');
    await provisioner.startAgain();
  }
  /** Gauges are 0, and what the pool counts is what the log's sessions have. */
  async function allRight(): Promise<boolean> {
    const server = (await list()).find(({ server_id: id }) => id === serverId);
    if (server?.status !== 'live') return false;
    if (server.leaked_browsers !== 0 || server.leaked_sessions !== 0) return false;
    const { sessions } = await auditLog(service);
    const states = [...sessions.values()].map(({ state }) => state);
    const active = states.filter(({ status }) => status === 'active').length;
    if (!states.every(({ status }) => status === 'active' || isFinal(status))) return false;
    const { total, idle, busy } = (await ask('/api/status')).autoscaler.pool_status;
    if (browsers === 'docker' && containers().length !== total) return false;
    return busy === active && idle >= 1 && total === idle + busy;
  }
});

type Server = {
  server_id: string;
  status: string;
  leaked_browsers: number | null;
  leaked_sessions: number | null;
};

/** Not one that has not begun, or has just ended. */
function killContainer(id: string): void {
  try {
    docker('kill', id);
  } catch (error) {
    if (!/is not running|No such container/.test(String(error))) throw error;
  }
}

async function killPart({ dataDir }: RunningService, part: 'nats' | 'redis'): Promise<void> {
  const text = await readFile(join(dataDir, `${part}.pid`), 'utf8');
  process.kill((JSON.parse(text) as { pid: number }).pid, 'SIGKILL');
}
