import { setTimeout as pause } from 'node:timers/promises';
import type { RecordedOf } from '#events/events.ts';
import type { ServerState } from '#events/server.ts';
import type { SessionState } from '#events/session.ts';
import type { WorkloadState } from '#events/workload.ts';
import { idOf } from '#projections/projection.ts';
import { currentServers, servers } from '#projections/servers.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionsOnServer, sessionView } from '#projections/session-view.ts';
import { workloads, workloadsOnServer } from '#projections/workloads.ts';
import { decideServer } from '#src/domain/fleet/server.ts';
import { decideWorkload } from '#src/domain/fleet/workload.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { handle } from '#src/commands/handle-command.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import { LEASE_MS } from '#src/messaging/leases.ts';
import type { TimekeeperParts } from './dependencies.ts';

const ME = 'timekeeper/lost-server';
/** How often leases are looked at; a lost server is known within a lease and this. */
const LOOK_EVERY_MS = 2_000;
/** A lease has to be missing in so many looks in a row: one may fall into a restart of the log. */
const LOOKS = 2;

/**
 * Finds servers whose lease ran out and ends what they ran, until the signal aborts. Never throws.
 * While the log was away nobody could renew: for a lease's length after that nobody is lost.
 */
export async function watchServers(parts: TimekeeperParts, signal: AbortSignal): Promise<void> {
  const missed = new Map<string, number>();
  let trustedFrom = 0;
  const forget = parts.onLogReconnect(() => {
    trustedFrom = performance.now() + LEASE_MS;
  });
  while (!signal.aborted) {
    try {
      const lost = await withoutLease(parts, missed);
      if (performance.now() >= trustedFrom) for (const id of lost) await lose(parts, id);
    } catch (error) {
      // The log or the read model is away; leases are judged again once they are back.
      missed.clear();
      parts.log.debug({ err: error }, 'servers not looked at');
    }
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  forget();
}

async function withoutLease(
  { views, leases, desk }: TimekeeperParts,
  missed: Map<string, number>,
): Promise<string[]> {
  const current = await readList<ServerState>(views, idOf(servers), currentServers);
  const held = await leases.held();
  for (const { id } of current) missed.set(id, held.has(id) ? 0 : (missed.get(id) ?? 0) + 1);
  const ids = current.map(({ id }) => id);
  for (const id of missed.keys()) if (!ids.includes(id)) missed.delete(id);
  const lost = ids.filter((id) => (missed.get(id) ?? 0) >= LOOKS);
  // A server that has only just joined is known by its log before its lease is seen everywhere.
  const last = await Promise.all(
    lost.map((id) => desk.log.last<'server'>({ kind: 'server', id }, { fromLeader: true })),
  );
  return lost.filter((_, at) => isOverdue(last[at] ?? null, desk.now()));
}

/** What a restart may take, with an image to be fetched for it. */
const RESTART_MS = 60_000;

/** Whether a server has said for too long nothing after its last word. */
function isOverdue(last: RecordedOf<'server'> | null, now: number): boolean {
  if (last === null) return false;
  const withinMs = last.type === 'server.restarting' ? RESTART_MS : LEASE_MS;
  return Date.parse(last.time) < now - withinMs;
}

/** Its sessions fail and are refunded, its browsers are gone, and then it is lost itself. */
async function lose({ desk, views, log }: TimekeeperParts, serverId: string): Promise<void> {
  log.warn({ serverId }, 'server lost: its lease ran out');
  const running = await readList<SessionState>(
    views,
    idOf(sessionView),
    sessionsOnServer(serverId),
  );
  for (const { organizationId, id } of running) {
    const failure = {
      type: 'FailSession',
      reason: 'server_lost',
      detail: 'the server that ran the browser is gone',
      exitCode: null,
      now: desk.now(),
    } as const;
    await handleSession(desk, { organizationId, id }, failure, causeBy(ME));
  }
  const browsers = await readList<WorkloadState>(
    views,
    idOf(workloads),
    workloadsOnServer(serverId),
  );
  for (const { id } of browsers) {
    const report = { type: 'ReportTerminated', reason: 'server_lost', exitCode: null } as const;
    await handle<'workload'>(
      desk,
      { kind: 'workload', id },
      (one) => decideWorkload(report, one),
      causeBy(ME),
    );
  }
  const server = { kind: 'server', id: serverId } as const;
  await handle<'server'>(
    desk,
    server,
    (one) => decideServer({ type: 'ReportLost' }, one),
    causeBy(ME),
  );
}
