import { setTimeout as pause } from 'node:timers/promises';
import { isOf } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { readList } from '#projections/read-list.ts';
import { Unavailable } from '../errors.ts';
import { load } from '../log/fold.ts';
import { readRange } from '../log/read-range.ts';
import type { Timer } from '../log/timers.ts';
import type { SessionIdentity } from '../session/session.ts';
import { timersOf } from './arm.ts';
import type { TimekeeperParts } from './parts.ts';

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
 * One read of the log for each open session a minute. Never throws.
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
        for (const row of await openOf(parts, organizationId))
          if (!signal.aborted) await fireOverdueOf(parts, { organizationId, id: row.id }, fire);
    } catch (error) {
      // The log or the read model is away: what was not looked at is next time.
      parts.log.warn({ err: error }, 'not all open sessions were looked at for lost timers');
    }
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

function openOf({ views }: TimekeeperParts, organizationId: string): Promise<SessionRow[]> {
  return readList(views, idOf(organizationSessions), openSessions(organizationId));
}

/** @throws Unavailable('event-log'); what else fails with one session keeps no other from it */
async function fireOverdueOf(
  { desk, queue, log }: TimekeeperParts,
  session: SessionIdentity,
  fire: (timer: Timer) => Promise<void>,
): Promise<void> {
  try {
    const { state } = await load<'session'>(desk.log, { kind: 'session', ...session });
    if (state === null) return;
    const overdue = timersOf(state, queue).filter(({ at }) => at + LATE_MS <= desk.now());
    for (const { kind } of overdue) {
      log.warn({ ...session, kind }, 'a timer is overdue: its session is judged without it');
      await fire({ organizationId: session.organizationId, sessionId: session.id, kind });
    }
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    log.error({ err: error, ...session }, 'an overdue timer cannot be handled');
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
