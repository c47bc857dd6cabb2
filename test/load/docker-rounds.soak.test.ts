import { readFileSync, readdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { dockerHost, hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { auditLog } from '#test/support/service/audit-event-store.ts';
import { json } from '#test/support/clients/command-line.ts';
import { poolOf } from '#test/support/service/real-session.ts';
import { heldBytes, WITH_INSPECTOR } from '#test/support/load/heap.ts';

const ROUNDS = Number(process.env['DOCKER_ROUNDS'] ?? 200);
const AT_ONCE = 3;
const MIB = 1024 ** 2;
/** What a process may hold more after the second half than after the first. */
const GROWTH_BYTES_MAX = 8 * MIB;
/** For what is told of a browser to be read where the browser itself is seen at once. */
const TOLD_WITHIN_MS = 20_000;
const TIERS = { max: { requests_per_minute: 1e6, concurrent_sessions: 1e4, credits: 1e9 } };

test.runIf(hasDocker())(
  'a pool of three goes through many sessions and leaves nothing',
  async () => {
    const zombiesBefore = zombies();
    await using service = await startService({
      BROWSERS: 'docker',
      DOCKER_NETWORK: testNetwork(),
      ...{ POOL_MIN_IDLE: '3', POOL_MAX_IDLE: '3', POOL_MAX: '3' },
      TIERS: JSON.stringify(TIERS),
      ...WITH_INSPECTOR,
    });
    const [server] = (await json(service, 'servers', 'list')) as { server_id: string }[];
    const containers = createCensus(server?.server_id ?? '');
    await eventually(() => isSettled(service, containers), 'three browsers wait', 60_000);

    const over = new AbortController();
    const watching = watchCounters(service, containers, over.signal);
    const starts: string[] = [];
    async function runHalf(): Promise<number> {
      let left = ROUNDS / 2;
      async function go(): Promise<void> {
        for (; left > 0; starts.push(await oneRound(service))) left -= 1;
      }
      await Promise.all(Array.from({ length: AT_ONCE }, go));
      await eventually(() => isSettled(service, containers), 'three browsers wait again', 60_000);
      return heldBytes(service);
    }
    const warmed = await runHalf();
    const held = await runHalf();
    over.abort();
    const { wrong, seen } = await watching;
    console.log(`held after each half: ${warmed / MIB}, ${held / MIB} MiB; ${seen} looks`);
    expect(wrong).toEqual([]);
    expect(seen).toBeGreaterThan(ROUNDS / 10);
    expect(held - warmed).toBeLessThan(GROWTH_BYTES_MAX);

    const { sessions } = await auditLog(service);
    const lives = [...sessions.values()];
    expect(lives).toHaveLength(ROUNDS);
    expect(lives.filter(({ state }) => state.status !== 'stopped')).toEqual([]);
    // Callers are told of their browsers what the log has.
    const isWarm = ({ events }: (typeof lives)[number]) =>
      !events.some(({ type }) => type === 'session.assigned');
    const told = (word: string) => starts.filter((start) => start === word).length;
    expect(told('warm')).toBe(lives.filter(isWarm).length);
    expect(told('cold')).toBe(ROUNDS - lives.filter(isWarm).length);

    await service.end('SIGTERM');
    expect(await containers()).toBe(0);
    await eventually(() => zombies() <= zombiesBefore, 'nothing waits to be reaped');
  },
  1_500_000,
);

/** A session that is asked for and ended; whether a browser waited for it, as it was told. */
async function oneRound(service: RunningService): Promise<string> {
  const created = await service.request('POST', '/api/sessions', { duration: '10m' });
  expect(created.status).toBe(201);
  const { id } = created.body as { id: string };
  await eventually(async () => (await statusOf(service, id)) === 'active', `${id} runs`, 60_000);
  const ended = await service.request('DELETE', `/api/sessions/${id}`);
  expect(ended.status).toBe(200);
  return /;desc=(\w+)/.exec(created.headers.get('server-timing') ?? '')?.[1] ?? 'not waited for';
}

async function statusOf(service: RunningService, id: string): Promise<string> {
  const { body } = await service.request('GET', `/api/sessions/${id}`);
  return body.status as string;
}

/** How many containers the engine has of a server's browsers. */
function createCensus(serverId: string): () => Promise<number> {
  const engine = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
  const filters = { label: [`browser-session-service.server=${serverId}`] };
  return async () => (await engine.listContainers({ all: true, filters })).length;
}

/** Looks again and again; what was ever seen of the counters that is wrong. */
async function watchCounters(
  service: RunningService,
  containers: () => Promise<number>,
  over: AbortSignal,
): Promise<{ wrong: object[]; seen: number }> {
  const wrong: object[] = [];
  let seen = 0;
  for (; !over.aborted; seen += 1) {
    const counters = await poolOf(service);
    const { total = -1, ...parts } = counters;
    const sum = Object.values(parts).reduce((all, one) => all + one, 0);
    if (Object.keys(parts).length !== 5 || sum !== total || total > AT_ONCE) wrong.push(counters);
    await eventually(
      () => agrees(service, containers),
      'the engine has what is counted',
      TOLD_WITHIN_MS,
    ).catch(() => wrong.push(counters));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { wrong, seen };
}

/**
 * Whether the engine has a container for each browser that waits or serves, and none that is not
 * counted; not known while the counters move.
 */
async function agrees(
  service: RunningService,
  containers: () => Promise<number>,
): Promise<boolean> {
  const before = await poolOf(service);
  const found = await containers();
  const after = await poolOf(service);
  if (!isDeepStrictEqual(before, after)) return true;
  const { total = -1, idle = 0, busy = 0 } = after;
  return idle + busy <= found && found <= total;
}

/** Three wait, nothing else is there, and the engine says the same. */
async function isSettled(
  service: RunningService,
  containers: () => Promise<number>,
): Promise<boolean> {
  const { total, idle } = await poolOf(service);
  return total === AT_ONCE && idle === AT_ONCE && (await containers()) === AT_ONCE;
}

/** Processes that have ended and that nobody has waited for. */
function zombies(): number {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8');
      } catch {
        return '';
      }
    });
  const ours = /^\d+ \((tini|bash|socat|chromium|Xtigervnc|chrome_crashpad|docker-proxy)[^)]*\) Z/;
  return stats.filter((stat) => ours.test(stat)).length;
}
