import { createMemoryViews } from '#projections/store/views.memory.ts';
import type { Upkeep } from '#projections/store/maintenance.ts';
import { createRedisViews } from '#projections/store/redis/redis-views.ts';
import type { Views, ViewWrite } from '#projections/store/views.ts';
import { startRedis } from '#test/support/servers/real-redis.ts';

/** Every adapter of the port. */
export const viewStores: { adapter: string; open: () => Promise<Views & Upkeep> }[] = [
  { adapter: 'memory', open: async () => createMemoryViews() },
  { adapter: 'Redis', open: openOnRedis },
];

/** The views in a redis-server of their own. */
async function openOnRedis(): Promise<Views & Upkeep> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const views = stack.use(await createRedisViews({ url: redis.url }));
  const parts = stack.move();
  return { ...views, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** A write of a view that says its key and the sequence it is of. */
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

/** The keys that a page shows, in its order. */
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
