import type { Redis } from 'ioredis';
import { Unavailable } from '#src/kernel/errors.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { ReadMemoryUse } from '../memory-use.ts';

/** The limit for an answer, as that of a read of views. */
const ANSWER_MS = 1_000;

/** Reads the memory that Redis uses and its limit. */
export function createRedisMemoryUse(redis: Pick<Redis, 'info'>): ReadMemoryUse {
  return async () => {
    const facts = await within(ANSWER_MS, redis.info('memory')).catch((error: unknown) => {
      throw new Unavailable('read-model', error);
    });
    return { usedBytes: numberIn(facts, 'used_memory'), maxBytes: numberIn(facts, 'maxmemory') };
  };
}

function numberIn(facts: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)\\s*$`, 'm').exec(facts)?.[1] ?? Number.NaN);
}
