import type { ReadModelFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { isVersionAtLeast, checkClockSkew } from './check-parts.ts';

const REDIS_MIN = '7.0';
const MEMORY_SHARE_WARN = 0.8;

/** Findings about Redis. Persistence does not matter: projections can be rebuilt. Pure. */
export function checkReadModel(redis: ReadModelFacts): Finding[] {
  const findings = findingsOf('read-model');
  const { found, ok, warn, bad } = findings;
  if (isVersionAtLeast(redis.version, REDIS_MIN)) ok('version', `Redis ${redis.version}`);
  else bad('version', `Redis ${redis.version} is too old`, `${REDIS_MIN} or later`);
  checkClockSkew(findings, 'Redis', redis.skewMs);
  if (redis.isCluster)
    bad(
      'topology',
      'this is a Redis Cluster; the keys of a projection must be on one server',
      'use one Redis, with a replica if needed',
    );
  else if (redis.isReplica)
    bad('topology', 'this Redis is a replica and takes no writes', 'set REDIS_URL to the primary');
  else ok('topology', 'one primary');
  if (redis.evictionPolicy === 'noeviction') ok('eviction', 'maxmemory-policy is noeviction');
  else
    bad(
      'eviction',
      `maxmemory-policy is ${redis.evictionPolicy}: Redis may drop rows of the read model`,
      'set maxmemory-policy noeviction, then run bss projections rebuild',
    );
  const { usedBytes, maxBytes } = redis;
  if (maxBytes !== null && usedBytes > maxBytes * MEMORY_SHARE_WARN)
    warn(
      'memory',
      `${Math.round((usedBytes / maxBytes) * 100)} % of maxmemory is used`,
      'raise maxmemory: at the limit projections stop and lists answer 503',
    );
  else ok('memory', `${(usedBytes / 1024 ** 2).toFixed(0)} MiB used`);
  return found;
}
