import type { ConfigFacts, LogFacts, StreamFacts } from './facts.ts';
import { findingsOf, type Finding, type Findings } from './finding.ts';
import { isVersionAtLeast, judgeSkew } from './check-parts.ts';

/** Atomic batches and schedules came with it. */
const NATS_MIN = '2.12';
/** Beyond three, another copy costs more than it protects. */
const REPLICAS_MAX = 3;
const STORAGE_SHARE_WARN = 0.8;

/** What the event log has to be like. Pure. */
export function judgeLog(log: LogFacts, config: ConfigFacts): Finding[] {
  const findings = findingsOf('log');
  const { found, ok, warn, bad } = findings;
  if (isVersionAtLeast(log.version, NATS_MIN)) ok('version', `nats-server ${log.version}`);
  else
    bad('version', `nats-server ${log.version} is too old`, `${NATS_MIN} or later; 2.15 is tried`);
  judgeServers(findings, log, config);
  if (log.skewMs !== null) judgeSkew(findings, 'NATS', log.skewMs);
  for (const stream of log.streams) judgeStream(findings, stream);
  judgeReplicas(findings, log);
  if (log.mayPublishAll && !config.isEmbedded)
    warn(
      'permissions',
      'this user of NATS may publish to every subject',
      'give each role its own user (deploy/nats.conf): only who decides may append events',
    );
  else ok('permissions', 'the NATS user may do what it needs to');
  const { usedBytes, maxBytes } = log.storage;
  if (maxBytes !== null && usedBytes > maxBytes * STORAGE_SHARE_WARN)
    warn(
      'storage',
      `${Math.round((usedBytes / maxBytes) * 100)} % of JetStream’s storage is used`,
      'raise max_file_store, on a disk that has the room: what does not fit is refused',
    );
  else ok('storage', `${(usedBytes / 1024 ** 2).toFixed(0)} MiB stored`);
  return found;
}

function judgeServers({ ok, warn, bad }: Findings, log: LogFacts, config: ConfigFacts): void {
  const { servers } = log;
  if (servers.length === 0) {
    // The embedded one is run by the service.
    if (!config.isEmbedded)
      warn(
        'sync',
        'this user may not ask NATS how its servers are set',
        'see that they have sync_interval: always, or use deploy/nats.conf',
      );
    return;
  }
  const versions = new Set(servers.map(({ version }) => version));
  const told = servers.map(({ name, version }) => `${name} ${version}`).join(', ');
  if (versions.size > 1)
    warn('servers', `nats-servers of ${versions.size} versions: ${told}`, 'upgrade the older ones');
  const late = servers.filter(({ syncsAlways }) => !syncsAlways).map(({ name }) => name);
  if (late.length > 0)
    bad(
      'sync',
      `what ${late.join(', ')} acknowledges is on its disk only later`,
      'set sync_interval: always: where power fails, acknowledged events are lost without it',
    );
  else ok('sync', 'what NATS acknowledges is on its disk');
}

function judgeStream({ ok, warn, bad }: Findings, stream: StreamFacts): void {
  const { name, isThere, differs, unfit, behind, leader } = stream;
  if (!isThere) return warn('streams', `${name} is not there`, 'a start makes it, or --fix');
  if (unfit.length > 0)
    return bad(
      'streams',
      `${name} cannot serve: ${unfit.join('; ')}`,
      'it is not the service’s own; restore a backup, or let the service have another NATS account',
    );
  if (differs.length > 0)
    return bad('streams', `${name}: ${differs.join('; ')}`, '--fix puts that right');
  if (behind.length > 0)
    return warn(
      'streams',
      `${name}: ${behind.join(', ')} away or behind`,
      'see that all nats-servers run and reach each other; two of three have to',
    );
  const led = leader === null ? '' : `, led by ${leader}`;
  ok('streams', `${name} is as it has to be${led}`);
}

function judgeReplicas(findings: Findings, log: LogFacts): void {
  const { ok, bad } = findings;
  const size = clusterSize(log);
  if (size === 2)
    findings.warn(
      'servers',
      'two servers of NATS answer: the loss of either stops it',
      'one server, or three',
    );
  const wanted = Math.min(size, REPLICAS_MAX);
  const there = log.streams.filter(({ isThere }) => isThere);
  const fewer = there.filter(({ replicas }) => replicas < wanted);
  const names = fewer.map(({ name, replicas }) => `${name} ${replicas}`).join(', ');
  if (fewer.length > 0)
    bad('replicas', `copies in a cluster of ${size}: ${names}`, `--fix raises to ${wanted}`);
  else if (wanted === 1)
    ok('replicas', 'one NATS server: its disk is all there is, so mind the backups');
  else if (there.length > 0) ok('replicas', `${wanted} copies of each stream`);
}

/** One that is away now is known by the copies it has. */
function clusterSize({ isClustered, servers, streams }: LogFacts): number {
  if (!isClustered) return 1;
  const known = servers.length === 0 ? REPLICAS_MAX : servers.length;
  return Math.max(known, ...streams.map(({ replicas }) => replicas));
}
