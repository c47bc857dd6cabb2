import { isOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filters, organizationIn } from '#events/subjects.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { pageMax } from '#projections/store/limits.ts';
import { projectionId } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { isOutage } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { ScheduledTimers, Timer } from '#src/kernel/messaging/timers.ts';
import { timersOf, upcomingTimersOf } from './schedule-timers.ts';
import type { TimekeeperDependencies } from './dependencies.ts';

/** How often the open sessions are checked; the first check is at the start. */
const CHECK_EVERY_MS = 60_000;
/**
 * A timer that is this late is lost: a fired timer is handled within milliseconds, after a failover
 * within seconds.
 */
const LATE_MS = 60_000;
/** Sessions that are checked at once. */
const CONCURRENCY = 32;

/**
 * Finds lost timers until the signal aborts: those that should have fired are handled, and those
 * that are still to come are set again. A session's state says what is due, with or without a
 * timer. Timers are lost together with the TIMERS stream. The read model finds the sessions; the
 * command decides on the event store's state. The cost depends on open sessions and organizations,
 * not on ended sessions. Several timekeepers may do the same work: it has one effect. Never throws.
 */
export async function watchOverdue(
  dependencies: TimekeeperDependencies,
  fire: (timer: Timer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const organizations = createOrganizations(dependencies);
  while (!signal.aborted) {
    try {
      for (const organizationId of await organizations.all())
        await checkOrganization(dependencies, organizationId, { fire, signal });
    } catch (error) {
      // The event store or the read model is unavailable: the next check covers the rest.
      dependencies.log.warn({ err: error }, 'check for lost timers incomplete');
    }
    await sleep(CHECK_EVERY_MS, signal);
  }
}

type Check = { fire: (timer: Timer) => Promise<void>; signal: AbortSignal };

/** @throws Unavailable */
async function checkOrganization(
  dependencies: TimekeeperDependencies,
  organizationId: string,
  { fire, signal }: Check,
): Promise<void> {
  let scheduled: ScheduledTimers | null = null;
  for await (const sessions of openSessionsOf(dependencies, organizationId)) {
    // Read before the sessions of the page are judged, and only if there are any.
    scheduled ??= await dependencies.timers.scheduled(organizationId);
    for (let from = 0; from < sessions.length && !signal.aborted; from += CONCURRENCY) {
      const some = sessions.slice(from, from + CONCURRENCY);
      const isSet = scheduled;
      await Promise.all(
        some.map((session) => checkSession(dependencies, session, { isSet, fire })),
      );
    }
  }
}

/** In pages. */
async function* openSessionsOf(
  { views }: TimekeeperDependencies,
  organizationId: string,
): AsyncIterable<SessionState[]> {
  const list = openSessions(organizationId);
  const rows = await readList<SessionRow>(views, projectionId(organizationSessions), list);
  for (let from = 0; from < rows.length; from += pageMax) {
    const page = rows.slice(from, from + pageMax).map(({ id }) => sessionKey(organizationId, id));
    const texts = await views.readMany(projectionId(sessionView), page);
    yield texts.filter((text) => text !== null).map((text) => JSON.parse(text) as SessionState);
  }
}

/** Any error but Unavailable is logged: other sessions go on. @throws Unavailable('event-log') */
async function checkSession(
  { context, queue, log, timers }: TimekeeperDependencies,
  session: SessionState,
  { isSet, fire }: { isSet: ScheduledTimers; fire: Check['fire'] },
): Promise<void> {
  const { organizationId, id: sessionId } = session;
  const now = context.now();
  const overdue = timersOf(session, queue).filter(({ at }) => at + LATE_MS <= now);
  // The timers of a new session may still be on their way.
  const isNew = now - Date.parse(session.createdAt) < LATE_MS;
  const lost = overdue.length > 0 || isNew ? [] : upcomingTimersOf(session, queue, now);
  try {
    for (const { kind } of overdue) {
      log.warn({ organizationId, sessionId, kind }, 'overdue timer: handling it now');
      await fire({ organizationId, sessionId, kind });
    }
    for (const { kind, at } of lost) {
      const timer = { organizationId, sessionId, kind };
      if (isSet.has(timer)) continue;
      log.warn({ organizationId, sessionId, kind }, 'lost timer: setting it again');
      await timers.schedule(timer, new Date(at));
    }
  } catch (error) {
    if (isOutage(error)) throw error;
    log.error({ err: error, organizationId, sessionId }, 'overdue timer failed');
  }
}

/** All organizations of the event store; each call reads only the new events. */
export function createOrganizations({ context, log }: TimekeeperDependencies) {
  const ids = new Set<string>();
  let after = 0;
  return {
    /** @throws Unavailable('event-log') */
    async all(): Promise<ReadonlySet<string>> {
      const batches = context.eventStore.read({
        subjects: filters.organizations,
        after,
        // Its subject says which organization there is; nothing else is needed.
        onUnreadable(poison) {
          const organizationId = organizationIn(poison.subject);
          if (organizationId !== null) ids.add(organizationId);
          else log.error(poison, 'unreadable organization event skipped');
        },
      });
      for await (const batch of batches)
        for (const event of batch) {
          if (isOf('organization', event)) ids.add(event.aggregate.organizationId);
          after = event.sequence;
        }
      return ids;
    },
  };
}
