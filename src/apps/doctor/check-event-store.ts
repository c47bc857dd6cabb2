import type { ConfigFacts, EventStoreFacts, StreamFacts } from './facts.ts';
import { findingsOf, type Finding, type Findings } from './finding.ts';
import { isVersionAtLeast, checkClockSkew } from './check-parts.ts';

/** The first version with atomic batches and scheduled messages. */
const NATS_MIN = '2.12';
/** A fourth replica costs more than it protects. */
const REPLICAS_MAX = 3;
const STORAGE_SHARE_WARN = 0.8;

/** Findings about the event store: NATS servers, streams and replicas. Pure. */
export function checkEventStore(log: EventStoreFacts, config: ConfigFacts): Finding[] {
  const findings = findingsOf('log');
  const { found, ok, warn, bad } = findings;
  if (isVersionAtLeast(log.version, NATS_MIN)) ok('version', `nats-server ${log.version}`);
  else
    bad(
      'version',
      `nats-server ${log.version} is too old`,
      `${NATS_MIN} or later; tested with 2.15`,
    );
  checkServers(findings, log, config);
  if (log.skewMs !== null) checkClockSkew(findings, 'NATS', log.skewMs);
  for (const stream of log.streams) checkStream(findings, stream);
  checkReplicas(findings, log);
  if (log.mayPublishAll && !config.isEmbedded)
    warn(
      'permissions',
      'this NATS user may publish to every subject',
      'give each role a NATS user with its own permissions (deploy/nats.conf)',
    );
  else ok('permissions', 'the NATS user has limited permissions');
  const { usedBytes, maxBytes } = log.storage;
  if (maxBytes !== null && usedBytes > maxBytes * STORAGE_SHARE_WARN)
    warn(
      'storage',
      `${Math.round((usedBytes / maxBytes) * 100)} % of JetStream’s storage is used`,
      'raise max_file_store on a disk with enough room; a full store refuses appends',
    );
  else ok('storage', `${mib(usedBytes)} stored`);
  for (const stream of log.streams) checkSize(findings, stream);
  return found;
}

/** A stream of a greatest size is OBJECTS: the others take what they need. */
function checkSize({ ok, warn }: Findings, { name, bytes, maxBytes }: StreamFacts): void {
  if (maxBytes === null) return;
  const used = `${name}: ${mib(bytes)} of ${mib(maxBytes)}`;
  if (bytes > maxBytes * STORAGE_SHARE_WARN)
    warn(
      'storage',
      used,
      'raise OBJECT_STORE_MAX_MB, then --fix; a full store refuses files, profiles and recordings',
    );
  else ok('storage', used);
}

function mib(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(0)} MiB`;
}

function checkServers(
  { ok, warn, bad }: Findings,
  log: EventStoreFacts,
  config: ConfigFacts,
): void {
  const { servers } = log;
  if (servers.length === 0) {
    // The service configures its embedded server itself.
    if (!config.isEmbedded)
      warn(
        'sync',
        'this NATS user may not read the settings of the servers',
        'check that they have sync_interval: always, or use deploy/nats.conf',
      );
    return;
  }
  const versions = new Set(servers.map(({ version }) => version));
  const listed = servers.map(({ name, version }) => `${name} ${version}`).join(', ');
  if (versions.size > 1)
    warn(
      'servers',
      `nats-servers of ${versions.size} versions: ${listed}`,
      'upgrade the older ones',
    );
  const late = servers.filter(({ syncsAlways }) => !syncsAlways).map(({ name }) => name);
  if (late.length > 0)
    bad(
      'sync',
      `acknowledged events are not yet on the disk of ${late.join(', ')}`,
      'set sync_interval: always; without it a power failure loses acknowledged events',
    );
  else ok('sync', 'acknowledged events are on disk');
}

function checkStream({ ok, warn, bad }: Findings, stream: StreamFacts): void {
  const { name, isThere, differs, unfit, behind, leader } = stream;
  if (!isThere) return warn('streams', `${name} does not exist`, 'a start creates it, or --fix');
  if (unfit.length > 0)
    return bad(
      'streams',
      `${name} is incompatible: ${unfit.join('; ')}`,
      'another program created it; restore a backup, or give the service its own NATS account',
    );
  if (differs.length > 0)
    return bad('streams', `${name}: ${differs.join('; ')}`, '--fix corrects these settings');
  if (behind.length > 0)
    return warn(
      'streams',
      `${name}: ${behind.join(', ')} unavailable or behind`,
      'check that all nats-servers run and reach each other; two of three are needed',
    );
  const led = leader === null ? '' : `, led by ${leader}`;
  ok('streams', `${name} is configured correctly${led}`);
}

function checkReplicas(findings: Findings, log: EventStoreFacts): void {
  const { ok, bad } = findings;
  const size = clusterSize(log);
  if (size === 2)
    findings.warn(
      'servers',
      'two NATS servers: the loss of either stops the event store',
      'use one server, or three',
    );
  const wanted = Math.min(size, REPLICAS_MAX);
  const there = log.streams.filter(({ isThere }) => isThere);
  const fewer = there.filter(({ replicas }) => replicas < wanted);
  const names = fewer.map(({ name, replicas }) => `${name} ${replicas}`).join(', ');
  if (fewer.length > 0)
    bad(
      'replicas',
      `too few replicas in a cluster of ${size}: ${names}`,
      `--fix raises to ${wanted}`,
    );
  else if (wanted === 1) ok('replicas', 'one NATS server, one replica: take backups');
  else if (there.length > 0) ok('replicas', `${wanted} replicas of each stream`);
}

/** The number of servers. A server that is down now still counts as a replica of the streams. */
function clusterSize({ isClustered, servers, streams }: EventStoreFacts): number {
  if (!isClustered) return 1;
  const known = servers.length === 0 ? REPLICAS_MAX : servers.length;
  return Math.max(known, ...streams.map(({ replicas }) => replicas));
}
