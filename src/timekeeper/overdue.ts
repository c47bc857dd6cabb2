import { isOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { pageMax } from '#projections/store/limits.ts';
import { projectionId } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { Unavailable } from '#src/errors.ts';
import { sleep } from '#src/async/sleep.ts';
import type { Timer } from '#src/messaging/timers.ts';
import { timersOf } from './schedule-timers.ts';
import type { TimekeeperDependencies } from './dependencies.ts';

/** How often the open sessions are checked; the first check is at the start. */
const CHECK_EVERY_MS = 60_000;
/**
 * A timer that is this late is lost: a fired timer is handled within milliseconds, after a failover
 * within seconds.
 */
const LATE_MS = 60_000;

/**
 * Handles timers that should have fired and did not, until the signal aborts. A session's state
 * says what is due, with or without a timer. Timers are lost together with the TIMERS stream, and
 * if an earlier version set them, whose fired timers the server deletes after an hour. The read
 * model finds overdue timers; the command decides on the event store's state. Never throws.
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
        for await (const session of openSessionsOf(dependencies, organizationId))
          if (!signal.aborted) await handleOverdueOf(dependencies, session, fire);
    } catch (error) {
      // The event store or the read model is unavailable: the next check covers the rest.
      dependencies.log.warn({ err: error }, 'check for lost timers incomplete');
    }
    await sleep(CHECK_EVERY_MS, signal);
  }
}

async function* openSessionsOf(
  { views }: TimekeeperDependencies,
  organizationId: string,
): AsyncIterable<SessionState> {
  const list = openSessions(organizationId);
  const rows = await readList<SessionRow>(views, projectionId(organizationSessions), list);
  for (let from = 0; from < rows.length; from += pageMax) {
    const page = rows.slice(from, from + pageMax).map(({ id }) => sessionKey(organizationId, id));
    for (const text of await views.readMany(projectionId(sessionView), page))
      if (text !== null) yield JSON.parse(text) as SessionState;
  }
}

/** Any error but Unavailable is logged: other sessions go on. @throws Unavailable('event-log') */
async function handleOverdueOf(
  { context, queue, log }: TimekeeperDependencies,
  session: SessionState,
  fire: (timer: Timer) => Promise<void>,
): Promise<void> {
  const { organizationId, id: sessionId } = session;
  const overdue = timersOf(session, queue).filter(({ at }) => at + LATE_MS <= context.now());
  try {
    for (const { kind } of overdue) {
      log.warn({ organizationId, sessionId, kind }, 'overdue timer: handling it now');
      await fire({ organizationId, sessionId, kind });
    }
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    log.error({ err: error, organizationId, sessionId }, 'overdue timer failed');
  }
}

/** All organizations of the event store; each call reads only the new events. */
function createOrganizations({ context, log }: TimekeeperDependencies) {
  const ids = new Set<string>();
  let after = 0;
  return {
    /** @throws Unavailable('event-log') */
    async all(): Promise<ReadonlySet<string>> {
      const batches = context.eventStore.read({
        subjects: filters.organizations,
        after,
        onUnreadable: (poison) => log.error(poison, 'unreadable organization event skipped'),
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
