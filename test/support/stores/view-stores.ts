import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import { createRedisViews, type RedisViews } from '#projections/store/redis/redis-views.ts';
import type { Views, ViewWrite } from '#projections/store/views.ts';
import { elsewhere, redisServers, type Server } from '#test/support/servers/containers.ts';
import { eventually } from '#test/support/service/service.ts';

/** For tests of what Redis answers, not of what happens when it is late. */
export const PATIENT_MS = 60_000;

/** Every adapter of the port. */
export const viewStores: { adapter: string; open: () => Promise<Views & StoreMaintenance> }[] = [
  ...elsewhere([{ adapter: 'memory', open: async () => createMemoryViews() }]),
  ...redisServers.map(({ where, start }) => ({
    adapter: `Redis in a ${where}`,
    open: async () => openViewsOn(await start()),
  })),
];

/** The views once Redis answers: a service's start goes on after a second without it. */
export async function reachableViews(
  options: Parameters<typeof createRedisViews>[0],
): Promise<RedisViews> {
  const views = await createRedisViews(options);
  await eventually(() => views.isReachable(), 'Redis answers');
  return views;
}

/** The views on that server; both are disposed of together. */
async function openViewsOn(server: Server): Promise<Views & StoreMaintenance> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(server);
  const views = stack.use(await reachableViews({ url: redis.url, answerMs: PATIENT_MS }));
  const parts = stack.move();
  return { ...views, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** A write of a view that contains its key and its sequence. */
export function view(
  key: string,
  sequence: number,
  lists: string[] = [],
  order = sequence,
): ViewWrite {
  return { key, sequence, view: textOf(key, sequence), lists, order };
}

export function textOf(key: string, sequence: number): string {
  return JSON.stringify({ key, sequence });
}

export function removal(key: string, sequence: number): ViewWrite {
  return { key, sequence, view: null, lists: [], order: 0 };
}

/** The keys on a page, in its order. */
export async function keysOf(
  views: Views,
  projection: string,
  lists: string[],
  offset = 0,
  limit = 100,
): Promise<string[]> {
  const page = await views.page(projection, { lists, offset, limit });
  const items = JSON.parse(`[${page.items}]`) as { key: string }[];
  return items.map(({ key }) => key);
}
