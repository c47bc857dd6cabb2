import { isOf, type RecordedEvent } from '#events/events.ts';
import { filterOf } from '#events/subjects.ts';
import { EVENTS_MAX } from '#src/event-store/batch.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { readEvents } from '../../read-events.ts';
import { fleetOf, type Step } from '../session-at.ts';

/** What a server did this long after a session's end may still be the reason for it. */
const AFTERWARDS_MS = 60_000;
/** What servers do about themselves all the time, and no session ends of. */
const HOUSEKEEPING = ['server.pool-resized', 'server.reconciled'];

/**
 * Every event that belongs to a session, oldest first: its own, those of its browsers and of their
 * servers meanwhile, and the lines of the ledger for it.
 */
export async function readRelated(
  log: EventLog,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<RecordedEvent[]> {
  const [first, last] = [steps[0]?.event, steps.at(-1)?.event];
  if (first === undefined || last === undefined) return [];
  const { workloads, servers } = fleetOf(steps);
  const related: RecordedEvent[] = steps.map(({ event }) => event);
  if (workloads.length > 0)
    for await (const event of readEvents(log, workloads, warn)) related.push(event);
  if (servers.length > 0)
    for await (const event of readEvents(log, servers, warn, { after: first.sequence })) {
      if (Date.parse(event.time) > Date.parse(last.time) + AFTERWARDS_MS) break;
      if (!HOUSEKEEPING.includes(event.type)) related.push(event);
    }
  related.push(...(await readLedger(log, steps, warn)));
  return related.toSorted((one, other) => one.sequence - other.sequence);
}

/** A move of the ledger is in one batch with the event that asked for it: it is sought there. */
async function readLedger(
  log: EventLog,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<RecordedEvent[]> {
  const found = new Map<string, RecordedEvent>();
  for (const { event } of steps) {
    if (!moving.includes(event.type) || !isOf('session', event)) continue;
    const { organizationId, id } = event.aggregate;
    const ledger = filterOf({ kind: 'ledger', organizationId });
    const { sequence } = event;
    const range = { after: Math.max(0, sequence - EVENTS_MAX), upTo: sequence + EVENTS_MAX };
    for await (const line of readEvents(log, [ledger], warn, range))
      if ('sessionId' in line.data && line.data.sessionId === id) found.set(line.id, line);
  }
  return [...found.values()];
}

const moving = ['session.requested', 'session.extended', 'session.stopped', 'session.failed'];
