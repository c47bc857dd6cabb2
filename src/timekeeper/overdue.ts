import { setTimeout as pause } from 'node:timers/promises';
import { isOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { filters } from '#events/subjects.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { pageMax } from '#projections/store/limits.ts';
import { idOf } from '#projections/projection.ts';
import { readList } from '#projections/store/queries.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { Unavailable } from '#src/errors.ts';
import { readRange } from '#src/event-store/read-range.ts';
import type { Timer } from '#src/messaging/timers.ts';
import { timersOf } from './schedule-timers.ts';
import type { TimekeeperParts } from './dependencies.ts';

/** How often the open sessions are looked at, beside each start. */
const LOOK_EVERY_MS = 60_000;
/**
 * A timer that is so late is lost: one that fired is handled within milliseconds, or some seconds
 * after a failover.
 */
const LATE_MS = 60_000;

/**
 * Has timers handled that should have fired and did not, until the signal aborts: what an open
 * session's state says is due needs no timer to be true. Timers are lost where a version before
 * this one set them, whose firings the server forgets after an hour, and with the TIMERS stream.
 * The read model says which are overdue; the log decides. Never throws.
 */
export async function watchOverdue(
  parts: TimekeeperParts,
  fire: (timer: Timer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const organizations = createOrganizations(parts);
  while (!signal.aborted) {
    try {
      for (const organizationId of await organizations.all())
        for await (const session of openSessionsOf(parts, organizationId))
          if (!signal.aborted) await fireOverdueOf(parts, session, fire);
    } catch (error) {
      // The log or the read model is away: what was not looked at is next time.
      parts.log.warn({ err: error }, 'not all open sessions were looked at for lost timers');
    }
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function* openSessionsOf(
  { views }: TimekeeperParts,
  organizationId: string,
): AsyncIterable<SessionState> {
  const list = openSessions(organizationId);
  const rows = await readList<SessionRow>(views, idOf(organizationSessions), list);
  for (let from = 0; from < rows.length; from += pageMax) {
    const page = rows.slice(from, from + pageMax).map(({ id }) => sessionKey(organizationId, id));
    for (const text of await views.readMany(idOf(sessionView), page))
      if (text !== null) yield JSON.parse(text) as SessionState;
  }
}

/** @throws Unavailable('event-log'); any other error of one session keeps no other from its turn */
async function fireOverdueOf(
  { desk, queue, log }: TimekeeperParts,
  session: SessionState,
  fire: (timer: Timer) => Promise<void>,
): Promise<void> {
  const { organizationId, id: sessionId } = session;
  const overdue = timersOf(session, queue).filter(({ at }) => at + LATE_MS <= desk.now());
  try {
    for (const { kind } of overdue) {
      log.warn({ organizationId, sessionId, kind }, 'a timer is overdue: it is handled now');
      await fire({ organizationId, sessionId, kind });
    }
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    log.error({ err: error, organizationId, sessionId }, 'an overdue timer cannot be handled');
  }
}

/** The organizations that the log has, of which each look reads only what is new. */
function createOrganizations({ desk, log }: TimekeeperParts) {
  const ids = new Set<string>();
  let after = 0;
  return {
    /** @throws Unavailable('event-log') */
    async all(): Promise<ReadonlySet<string>> {
      const batches = readRange(desk.log, {
        subjects: filters.organizations,
        after,
        upTo: Infinity,
        onMalformed: (poison) => log.error(poison, 'malformed event of an organization'),
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
