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
import { sleep } from '#src/kernel/async/sleep.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import { decideServer } from '#src/kernel/domain/fleet/server.ts';
import { decideWorkload } from '#src/kernel/domain/fleet/workload.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { isOutage } from '#src/kernel/errors.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { LEASE_MS } from '#src/kernel/messaging/leases.ts';
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
      if (performance.now() >= trustedFrom) await declareAllLost(dependencies, lost);
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
  { views, leases, context, lostAfterMs, log }: TimekeeperDependencies,
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
  const last = await Promise.all(
    lost.map((serverId) =>
      apart(log, { serverId }, () => lastOwnEvent(context.eventStore, serverId)),
    ),
  );
  return lost.filter((_, at) => isOverdue(last[at] ?? null, { now, lostAfterMs }));
}

/**
 * Does a part of the work. Its failure, unless it is an outage, keeps no other part from being
 * done: it is logged, the answer is null, and the next check tries again.
 * @throws Unavailable
 */
async function apart<Result>(
  log: Logger,
  what: { serverId: string; sessionId?: string; workloadId?: string },
  work: () => Promise<Result>,
): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (isOutage(error)) throw error;
    log.warn({ err: error, ...what }, 'a part of a lost server cannot be ended; it is tried again');
    return null;
  }
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

/** @throws Unavailable */
export async function declareAllLost(
  dependencies: LostServersDependencies,
  serverIds: readonly string[],
): Promise<void> {
  for (const serverId of serverIds)
    await apart(dependencies.log, { serverId }, () => declareLost(dependencies, serverId));
}

type LostServersDependencies = Pick<TimekeeperDependencies, 'context' | 'views' | 'log'>;

/**
 * Fails the server's sessions (refunded), terminates its workloads, then reports it lost: once all
 * of them are done, so that what could not be ended is found again.
 */
async function declareLost(
  { context, views, log }: LostServersDependencies,
  serverId: string,
): Promise<void> {
  log.warn({ serverId }, 'server lost: its lease expired');
  const running = await readList<SessionState>(
    views,
    projectionId(sessionView),
    sessionsOnServer(serverId),
  );
  let isDone = true;
  for (const { organizationId, id: sessionId } of running) {
    const failure = {
      type: 'FailSession',
      reason: 'server_lost',
      detail: 'the server that ran the browser is gone',
      exitCode: null,
      now: context.now(),
    } as const;
    const session = { organizationId, id: sessionId };
    const failed = await apart(log, { serverId, sessionId }, async () => {
      await handleSessionCommand(context, session, failure, newMetadata(ACTOR));
      return true;
    });
    isDone &&= failed === true;
  }
  const browsers = await readList<WorkloadState>(
    views,
    projectionId(workloads),
    workloadsOnServer(serverId),
  );
  for (const { id: workloadId } of browsers) {
    const report = { type: 'ReportTerminated', reason: 'server_lost', exitCode: null } as const;
    const ended = await apart(log, { serverId, workloadId }, async () => {
      await handleCommand<'workload'>(
        context,
        { kind: 'workload', id: workloadId },
        (one) => decideWorkload(report, one),
        newMetadata(ACTOR),
      );
      return true;
    });
    isDone &&= ended === true;
  }
  if (!isDone) return;
  const server = { kind: 'server', id: serverId } as const;
  await handleCommand<'server'>(
    context,
    server,
    (one) => decideServer({ type: 'ReportLost' }, one),
    newMetadata(ACTOR),
  );
}
