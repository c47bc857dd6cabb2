import { isDeepStrictEqual } from 'node:util';
import Docker from 'dockerode';
import { expect } from 'vitest';
import { json } from '#test/support/clients/command-line.ts';
import { dockerHost } from '#test/support/servers/docker-engine.ts';
import { poolOf } from '#test/support/service/real-session.ts';
import { eventually, type RunningService } from '#test/support/service/service.ts';

/** The engine's count of containers may be that late: events of the engine take a moment. */
const AGREES_WITHIN_MS = 20_000;
const SETTLED_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 50;

/** Counts the containers that the engine has of the browsers of the service's only server. */
export async function containerCounter(service: RunningService): Promise<() => Promise<number>> {
  const [server] = (await json(service, 'servers', 'list')) as { id: string }[];
  const engine = new Docker({ socketPath: dockerHost.slice('unix://'.length) });
  const filters = { label: [`browser-session-service.server=${server?.id}`] };
  return async () => (await engine.listContainers({ all: true, filters })).length;
}

/** Resolves once `size` browsers wait, nothing else is in the pool and the engine agrees. */
export async function untilPoolIsIdle(
  service: RunningService,
  containers: () => Promise<number>,
  size: number,
): Promise<void> {
  const isIdle = async () => {
    const { total, idle } = await poolOf(service);
    return total === size && idle === size && (await containers()) === size;
  };
  await eventually(isIdle, `${size} browsers wait`, SETTLED_WITHIN_MS);
}

/** How a create was answered: `start` is what its Server-Timing header names. */
export type CreateAnswer = { id: string; status: string; start: 'warm' | 'cold' | null };

/** Creates sessions and stops each as soon as it is active, so many at once. */
export async function churn(
  service: RunningService,
  sessions: number,
  atOnce: number,
): Promise<CreateAnswer[]> {
  const answers: CreateAnswer[] = [];
  let left = sessions;
  async function work(): Promise<void> {
    for (; left > 0; answers.push(await createAndStop(service))) left -= 1;
  }
  await Promise.all(Array.from({ length: atOnce }, work));
  return answers;
}

async function createAndStop(service: RunningService): Promise<CreateAnswer> {
  const created = await service.request('POST', '/api/sessions', { duration: '10m' });
  expect(created.status).toBe(201);
  const path = `/api/sessions/${created.body.id}`;
  const isActive = async () => (await service.request('GET', path)).body.status === 'active';
  await eventually(isActive, `${path} is active`, SETTLED_WITHIN_MS);
  expect((await service.request('DELETE', path)).status).toBe(200);
  const [, start] = /;desc=(warm|cold)\b/.exec(created.headers.get('server-timing') ?? '') ?? [];
  const { id, status } = created.body;
  return { id, status, start: (start as 'warm' | 'cold' | undefined) ?? null };
}

/** What a watch of the pool's counters has seen. */
export type CounterWatch = {
  looks: number;
  /** Counters that did not add up, exceeded the pool's size, or differed from the engine's. */
  wrong: Record<string, number>[];
};

/** Looks at the pool's counters again and again until `over` is aborted. */
export async function watchCounters(
  service: RunningService,
  containers: () => Promise<number>,
  size: number,
  over: AbortSignal,
): Promise<CounterWatch> {
  const watch: CounterWatch = { looks: 0, wrong: [] };
  for (; !over.aborted; watch.looks += 1) {
    const counters = await poolOf(service);
    const { total = -1, ...states } = counters;
    const sum = Object.values(states).reduce((all, one) => all + one, 0);
    if (Object.keys(states).length !== 5 || sum !== total || total > size)
      watch.wrong.push(counters);
    await eventually(
      () => engineAgrees(service, containers),
      'the engine has the containers that the pool counts',
      AGREES_WITHIN_MS,
    ).catch(() => watch.wrong.push(counters));
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return watch;
}

/**
 * Whether the engine has a container for each browser that waits or serves, and none that is not
 * counted. True while the counters change between two looks: then nothing can be compared.
 */
async function engineAgrees(
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
