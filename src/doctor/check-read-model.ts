import type { ReadModelFacts } from './facts.ts';
import { findingsOf, type Finding } from './finding.ts';
import { isVersionAtLeast, judgeSkew } from './check-parts.ts';

const REDIS_MIN = '7.0';
const MEMORY_SHARE_WARN = 0.8;

/** What Redis has to be like. All in it can be folded again: how it keeps it is of no account. */
export function judgeReadModel(redis: ReadModelFacts): Finding[] {
  const findings = findingsOf('read-model');
  const { found, ok, warn, bad } = findings;
  if (isVersionAtLeast(redis.version, REDIS_MIN)) ok('version', `Redis ${redis.version}`);
  else bad('version', `Redis ${redis.version} is too old`, `${REDIS_MIN} or later`);
  judgeSkew(findings, 'Redis', redis.skewMs);
  if (redis.isCluster)
    bad(
      'topology',
      'this is a Redis Cluster: a projection’s keys have to be on one server',
      'one Redis, with a replica where one is wanted',
    );
  else if (redis.isReplica)
    bad(
      'topology',
      'this Redis is a replica, and takes no writes',
      'name the primary in REDIS_URL',
    );
  else ok('topology', 'one primary');
  if (redis.evictionPolicy === 'noeviction') ok('eviction', 'nothing is evicted');
  else
    bad(
      'eviction',
      `maxmemory-policy is ${redis.evictionPolicy}: Redis may drop rows of the read model`,
      'maxmemory-policy noeviction; then bss projections rebuild',
    );
  const { usedBytes, maxBytes } = redis;
  if (maxBytes !== null && usedBytes > maxBytes * MEMORY_SHARE_WARN)
    warn(
      'memory',
      `${Math.round((usedBytes / maxBytes) * 100)} % of maxmemory is used`,
      'raise it: at its end lists stop being folded, and answer 503',
    );
  else ok('memory', `${(usedBytes / 1024 ** 2).toFixed(0)} MiB used`);
  return found;
}
