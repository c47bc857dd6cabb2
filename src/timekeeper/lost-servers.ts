import type { RecordedOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import type { SessionState } from '#events/session.ts';
import { streamFilter } from '#events/subjects.ts';
import type { WorkloadState } from '#events/workload.ts';
import { projectionId } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionsOnServer, sessionView } from '#projections/session-view.ts';
import { workloads, workloadsOnServer } from '#projections/workloads.ts';
import { sleep } from '#src/async/sleep.ts';
import { untilTickOf } from '#src/async/ticks.ts';
import { decideServer } from '#src/domain/fleet/server.ts';
import { decideWorkload } from '#src/domain/fleet/workload.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { LEASE_MS } from '#src/messaging/leases.ts';
import type { TimekeeperDependencies } from './dependencies.ts';

const ACTOR = 'timekeeper/lost-server';
/** How often leases are checked; a lost server is detected within a lease and this interval. */
const CHECK_EVERY_MS = 2_000;
/** A lease must be missing in this many consecutive checks: one may hit a NATS restart. */
const CHECKS = 2;

/**
 * Finds servers whose lease ran out and fails their sessions, until the signal aborts. Never
 * throws. Leases cannot be renewed while NATS is unavailable: for the length of a lease after that,
 * no server is declared lost.
 */
export async function watchServers(
  dependencies: TimekeeperDependencies,
  signal: AbortSignal,
): Promise<void> {
  const missed = new Map<string, Missed>();
  let trustedFrom = 0;
  const forget = dependencies.onLogReconnect(() => {
    trustedFrom = performance.now() + LEASE_MS;
  });
  while (!signal.aborted) {
    try {
      const lost = await withoutLease(dependencies, missed);
      if (performance.now() >= trustedFrom)
        for (const id of lost) await declareLost(dependencies, id);
    } catch (error) {
      // The event store or the read model is unavailable; the checks start again afterwards.
      missed.clear();
      dependencies.log.debug({ err: error }, 'failed to check server leases');
    }
    await sleep(untilTickOf(CHECK_EVERY_MS), signal);
  }
  forget();
}

/** Checks in a row without a lease, and the time of the first of them. */
type Missed = { checks: number; since: number };

async function withoutLease(
  { views, leases, context, lostAfterMs }: TimekeeperDependencies,
  missed: Map<string, Missed>,
): Promise<string[]> {
  const current = await readList<ServerState>(views, projectionId(servers), currentServers);
  const held = await leases.held();
  const now = context.now();
  for (const { id } of current) {
    const { checks, since } = missed.get(id) ?? { checks: 0, since: now };
    if (held.has(id)) missed.delete(id);
    else missed.set(id, { checks: checks + 1, since });
  }
  const ids = current.map(({ id }) => id);
  for (const id of missed.keys()) if (!ids.includes(id)) missed.delete(id);
  const lost = ids.filter((id) => {
    const { checks, since } = missed.get(id) ?? { checks: 0, since: now };
    return checks >= CHECKS && now - since >= lostAfterMs - LEASE_MS;
  });
  // A server that has just joined has an event before its lease is visible on every replica.
  const last = await Promise.all(lost.map((id) => lastOwnEvent(context.eventStore, id)));
  return lost.filter((_, at) => isOverdue(last[at] ?? null, { now, lostAfterMs }));
}

/**
 * The last event that says something of the server: an event that only carries its state forward is
 * no sign of life, and does not shorten a restart. It counts if the ones before it are purged: the
 * archive is not read, so that it may be unavailable.
 */
export async function lastOwnEvent(
  eventStore: EventStore,
  id: string,
): Promise<RecordedOf<'server'> | null> {
  const server = { kind: 'server', id } as const;
  const last = await eventStore.readLast<'server'>(server, { fromLeader: true });
  if (last?.type !== 'server.carried-forward') return last;
  const range = { subjects: [streamFilter(server)], upTo: last.sequence - 1 };
  let own: RecordedOf<'server'> = last;
  for await (const events of eventStore.read({ ...range, onUnreadable: () => undefined }))
    for (const event of events as RecordedOf<'server'>[])
      if (event.type !== 'server.carried-forward') own = event;
  return own;
}

/** How long a restart may take, including the download of an image. */
const RESTART_MS = 60_000;

/** Whether the server's last event is older than a lease, or than a restart may take. */
function isOverdue(
  last: RecordedOf<'server'> | null,
  { now, lostAfterMs }: { now: number; lostAfterMs: number },
): boolean {
  if (last === null) return false;
  const isRestart = last.type === 'server.restarting';
  const withinMs = isRestart ? Math.max(RESTART_MS, lostAfterMs) : LEASE_MS;
  return Date.parse(last.time) < now - withinMs;
}

/** Fails the server's sessions (refunded), terminates its workloads, then reports it lost. */
async function declareLost(
  { context, views, log }: TimekeeperDependencies,
  serverId: string,
): Promise<void> {
  log.warn({ serverId }, 'server lost: its lease expired');
  const running = await readList<SessionState>(
    views,
    projectionId(sessionView),
    sessionsOnServer(serverId),
  );
  for (const { organizationId, id } of running) {
    const failure = {
      type: 'FailSession',
      reason: 'server_lost',
      detail: 'the server that ran the browser is gone',
      exitCode: null,
      now: context.now(),
    } as const;
    await handleSessionCommand(context, { organizationId, id }, failure, newMetadata(ACTOR));
  }
  const browsers = await readList<WorkloadState>(
    views,
    projectionId(workloads),
    workloadsOnServer(serverId),
  );
  for (const { id } of browsers) {
    const report = { type: 'ReportTerminated', reason: 'server_lost', exitCode: null } as const;
    await handleCommand<'workload'>(
      context,
      { kind: 'workload', id },
      (one) => decideWorkload(report, one),
      newMetadata(ACTOR),
    );
  }
  const server = { kind: 'server', id: serverId } as const;
  await handleCommand<'server'>(
    context,
    server,
    (one) => decideServer({ type: 'ReportLost' }, one),
    newMetadata(ACTOR),
  );
}
