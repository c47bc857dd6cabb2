import { isOf, type RecordedEvent } from '#events/events.ts';
import { streamFilter, subjectOf } from '#events/subjects.ts';
import { EVENTS_MAX } from '#src/event-store/batch.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { readEvents } from '#src/event-store/read-events.ts';
import { fleetOf, type Step } from '../session-at.ts';

/** An event of a server up to this long after the session's end may still be its cause. */
const AFTERWARDS_MS = 60_000;
/** Routine events of servers, which never end a session. */
const HOUSEKEEPING = ['server.pool-resized', 'server.reconciled', 'server.carried-forward'];

/**
 * All events related to a session, oldest first: its own, those of its browsers, those of their
 * servers in that time, and the ledger's events for the session.
 */
export async function readRelated(
  eventStore: EventStore,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<RecordedEvent[]> {
  const [first, last] = [steps[0]?.event, steps.at(-1)?.event];
  if (first === undefined || last === undefined) return [];
  const { workloads, servers } = fleetOf(steps);
  const related: RecordedEvent[] = steps.map(({ event }) => event);
  if (workloads.length > 0)
    for await (const event of readEvents(eventStore, workloads, warn)) related.push(event);
  if (servers.length > 0)
    for await (const event of readEvents(eventStore, servers, warn, { after: first.sequence })) {
      if (Date.parse(event.time) > Date.parse(last.time) + AFTERWARDS_MS) break;
      if (!HOUSEKEEPING.includes(event.type)) related.push(event);
    }
  related.push(...(await readLedger(eventStore, steps, warn)));
  related.push(...(await readJoining(eventStore, steps, warn)));
  return related.toSorted((one, other) => one.sequence - other.sequence);
}

/** The request that stopped several sessions, this one among them. */
async function readJoining(
  eventStore: EventStore,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<RecordedEvent[]> {
  const stop = steps.find(({ event }) => event.type === 'session.stop-requested')?.event;
  const cause = stop?.metadata.causationId ?? null;
  if (stop === undefined || cause === null || !isOf('session', stop)) return [];
  const { organizationId } = stop.aggregate;
  const type = 'organization.sessions-stop-requested';
  const subject = subjectOf({ kind: 'organization', organizationId }, type);
  for await (const event of readEvents(eventStore, [subject], warn, { upTo: stop.sequence }))
    if (event.id === cause) return [event];
  return [];
}

/** Ledger events are appended in one batch with their session event, so read around each. */
async function readLedger(
  eventStore: EventStore,
  steps: readonly Step[],
  warn: (text: string) => void,
): Promise<RecordedEvent[]> {
  const found = new Map<string, RecordedEvent>();
  for (const { event } of steps) {
    if (!moving.includes(event.type) || !isOf('session', event)) continue;
    const { organizationId, id } = event.aggregate;
    const ledger = streamFilter({ kind: 'ledger', organizationId });
    const { sequence } = event;
    const range = { after: Math.max(0, sequence - EVENTS_MAX), upTo: sequence + EVENTS_MAX };
    for await (const line of readEvents(eventStore, [ledger], warn, range))
      if ('sessionId' in line.data && line.data.sessionId === id) found.set(line.id, line);
  }
  return [...found.values()];
}

const moving = ['session.requested', 'session.extended', 'session.stopped', 'session.failed'];
