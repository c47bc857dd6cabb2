import type { StopReason } from '#events/session.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import {
  readOwnedSessions,
  stopOwnedSession,
  type OwnedSession,
} from '#src/commands/mcp-sessions.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import type { StoredMcpSession } from '#src/kernel/messaging/mcp-sessions.ts';
import type { TimekeeperDependencies } from './dependencies.ts';
import { createOrganizations } from './overdue.ts';

const ACTOR = 'timekeeper/lost-client';
/**
 * How many graces a client has to come back whose stream an API process closed as it ended. By then
 * the protocol's own clients have opened it again, if the service was away for less than four.
 */
const RESTART_GRACES = 10;
/** Checks in the time that a client may be away. */
const CHECKS_IN_GRACE = 12;
/**
 * An MCP session that has ended is kept for so long: a create that was under way when it ended may
 * still make a browser session in it, which then ends too.
 */
const KEPT_ENDED_MS = 10 * 60_000;
/** How often browser sessions whose MCP session the store does not have are looked for. */
const ORPHANS_EVERY_MS = 5 * 60_000;
/** A younger browser session's MCP session may not be on every replica of the store. */
const ORPHAN_AGE_MS = 60_000;

/** What one timekeeper has seen of the MCP sessions with its own eyes. */
type Observed = {
  /** By id: the revision, and since when it is the last one, by the lived clock. */
  revisions: Map<string, { revision: number; since: number }>;
  /** The ended ones whose browser sessions were looked for, and when. */
  swept: Map<string, number>;
};

/**
 * Ends the browser sessions of MCP sessions whose client is lost or that have ended, until the
 * signal aborts. Never throws. Several timekeepers may do the same work: it has one effect.
 *
 * A client is lost if this process itself has seen no sign of life for the whole grace, and the
 * store's clock agrees. No clock of another process counts, and no wall clock. The time for which
 * this process or the machine was halted does not count, for signs of life may have been missed:
 * what it counts goes on by two checks at most from one check to the next. After an outage of the
 * store it begins anew.
 */
export async function watchLostClients(
  dependencies: TimekeeperDependencies,
  signal: AbortSignal,
  steady = () => performance.now(),
): Promise<void> {
  const { mcp, log } = dependencies;
  const everyMs = mcp.graceMs / CHECKS_IN_GRACE;
  const observed: Observed = { revisions: new Map(), swept: new Map() };
  const forget = () => observed.revisions.clear();
  const unsubscribe = dependencies.onLogReconnect(forget);
  const lived = createLivedClock(steady, 2 * everyMs);
  const organizations = createOrganizations(dependencies);
  let orphansAt = ORPHANS_EVERY_MS;
  while (!signal.aborted) {
    try {
      const now = lived();
      await endLost(dependencies, observed, now);
      if (now >= orphansAt) {
        orphansAt = now + ORPHANS_EVERY_MS;
        await endAllOrphans(dependencies, await organizations.all());
      }
    } catch (error) {
      // The event store or the read model is unavailable, and so it may be for the API.
      forget();
      log.warn({ err: error }, 'check for lost MCP clients incomplete');
    }
    await sleep(untilTickOf(everyMs), signal);
  }
  unsubscribe();
}

/**
 * A clock of what this process has lived through: it goes on by `stepMs` at most between two
 * readings, however long the process or the machine was halted between them.
 */
function createLivedClock(steady: () => number, stepMs: number): () => number {
  let last = steady();
  let lived = 0;
  return () => {
    const now = steady();
    lived += Math.min(Math.max(0, now - last), stepMs);
    last = now;
    return lived;
  };
}

/** @throws Unavailable */
async function endLost(
  dependencies: TimekeeperDependencies,
  observed: Observed,
  now: number,
): Promise<void> {
  const { mcp, log } = dependencies;
  const all = await mcp.sessions.all();
  observe(observed, all, now);
  const over: StoredMcpSession[] = [];
  for (const one of all) {
    const quietMs = now - (observed.revisions.get(one.id)?.since ?? now);
    if (one.ended !== null) {
      if (isSweepDue(observed, one, { now, everyMs: mcp.graceMs / 2 })) over.push(one);
    } else if (quietMs >= mcp.graceMs && one.ageMs >= patienceWith(one, mcp)) {
      const ended = await markLost(dependencies, one);
      if (ended !== null) over.push(ended);
    }
  }
  const organizations = Map.groupBy(over, ({ organizationId }) => organizationId);
  for (const [organizationId, sessions] of organizations)
    try {
      await endOf(dependencies, organizationId, { sessions, observed, now });
    } catch (error) {
      log.warn(
        { err: error, organizationId },
        'sessions of lost MCP clients not ended; again soon',
      );
    }
}

function observe({ revisions, swept }: Observed, all: readonly StoredMcpSession[], now: number) {
  const ids = new Set(all.map(({ id }) => id));
  for (const known of [revisions, swept])
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  for (const { id, revision } of all)
    if (revisions.get(id)?.revision !== revision) revisions.set(id, { revision, since: now });
}

function patienceWith(
  { stream, isAwaited }: StoredMcpSession,
  { graceMs, silenceMs }: TimekeeperDependencies['mcp'],
): number {
  if (isAwaited === true) return Math.min(RESTART_GRACES * graceMs, silenceMs);
  return stream === 'none' ? silenceMs : graceMs;
}

function isSweepDue(
  { swept }: Observed,
  { id, ageMs }: StoredMcpSession,
  { now, everyMs }: { now: number; everyMs: number },
): boolean {
  const last = swept.get(id);
  return last === undefined || now - last >= everyMs || ageMs >= KEPT_ENDED_MS;
}

/** The session as ended; null: its client was heard of meanwhile. @throws Unavailable */
async function markLost(
  { mcp, log }: TimekeeperDependencies,
  seen: StoredMcpSession,
): Promise<StoredMcpSession | null> {
  const { id, organizationId, client, stream, isAwaited } = seen;
  const why =
    stream === 'none' && isAwaited !== true ? 'was silent' : 'was cut off and did not come back';
  const named = client === '' ? 'its MCP client' : `its MCP client ${client}`;
  const ended = { reason: 'organization', note: `${named} ${why}` } as const;
  const marked = await mcp.sessions.change(id, (session, revision) =>
    revision === seen.revision ? { ...session, ended } : null,
  );
  if (marked === null) return null;
  log.warn({ mcpSessionId: id, organizationId, client, stream }, 'MCP client lost');
  return { ...seen, ...marked, ageMs: 0 };
}

/** Ends what these MCP sessions of one organization have left. @throws Unavailable */
async function endOf(
  dependencies: TimekeeperDependencies,
  organizationId: string,
  { sessions, observed, now }: { sessions: StoredMcpSession[]; observed: Observed; now: number },
): Promise<void> {
  const { mcp, views } = dependencies;
  const owned = await readOwnedSessions(views, organizationId);
  for (const { id, ended, ageMs } of sessions) {
    const left = owned.filter(({ owner }) => owner.mcpSessionId === id);
    const how = ended ?? { reason: 'organization', note: null };
    const isDone = await stopAll(dependencies, left, how);
    if (!isDone) continue;
    observed.swept.set(id, now);
    if (ageMs >= KEPT_ENDED_MS && left.length === 0) await mcp.sessions.remove(id);
  }
}

/** Ends the sessions whose MCP session the store has lost. Never throws. */
export async function endAllOrphans(
  dependencies: TimekeeperDependencies,
  organizationIds: Iterable<string>,
): Promise<void> {
  for (const organizationId of organizationIds)
    try {
      await endOrphans(dependencies, organizationId);
    } catch (error) {
      const message = 'sessions without their MCP session not ended; again soon';
      dependencies.log.warn({ err: error, organizationId }, message);
    }
}

/** @throws Unavailable */
async function endOrphans(
  dependencies: TimekeeperDependencies,
  organizationId: string,
): Promise<void> {
  const { mcp, views, context } = dependencies;
  const grown = (await readOwnedSessions(views, organizationId)).filter(
    ({ createdAt }) => context.now() - Date.parse(createdAt) >= ORPHAN_AGE_MS,
  );
  const byOwner = Map.groupBy(grown, ({ owner }) => owner.mcpSessionId);
  const note = 'its MCP session is gone';
  for (const [id, sessions] of byOwner)
    if ((await mcp.sessions.get(id)) === null)
      await stopAll(dependencies, sessions, { reason: 'organization', note });
}

/** False: one could not be stopped now; the others were. */
async function stopAll(
  { context, log }: TimekeeperDependencies,
  sessions: readonly OwnedSession[],
  { reason, note }: { reason: StopReason; note: string | null },
): Promise<boolean> {
  let isDone = true;
  for (const session of sessions)
    try {
      await stopOwnedSession(context, session, { reason, note, metadata: newMetadata(ACTOR) });
    } catch (error) {
      isDone = false;
      const { id: sessionId, organizationId } = session;
      log.warn(
        { err: error, sessionId, organizationId },
        'session of an ended MCP session not stopped',
      );
    }
  return isDone;
}
