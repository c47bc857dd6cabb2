import type { Redis } from 'ioredis';
import { clockSkewMs } from './clock-skew.ts';
import type { ReadModelFacts } from './facts.ts';

/** Reads the state of Redis; changes nothing. @throws Error if Redis does not answer or refuses */
export async function gatherReadModelFacts(redis: Redis): Promise<ReadModelFacts> {
  const facts = factsIn(await redis.info());
  const skewMs = await clockSkewMs(async () => {
    const [seconds, microseconds] = await redis.time();
    return Number(seconds) * 1000 + Number(microseconds) / 1000;
  });
  const maxBytes = Number(facts.get('maxmemory') ?? 0);
  return {
    version: facts.get('redis_version') ?? 'unknown',
    skewMs: skewMs ?? 0,
    evictionPolicy: facts.get('maxmemory_policy') ?? 'unknown',
    isCluster: facts.get('cluster_enabled') === '1',
    isReplica: facts.get('role') === 'slave',
    usedBytes: Number(facts.get('used_memory') ?? 0),
    maxBytes: maxBytes > 0 ? maxBytes : null,
  };
}

function factsIn(info: string): Map<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(':'));
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
