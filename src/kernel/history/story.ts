import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import { formatDuration } from './elapsed.ts';
import { fleetIn, type Fleet } from './fleet.ts';

/** What a session went through, as far as it explains where the session is. */
export type Story = {
  /** Its events, oldest first; of uses that follow each other only the last. */
  events: RecordedOf<'session'>[];
  fleet: Fleet;
  /** The last event that is a change, and the state after it. */
  end: RecordedOf<'session'>;
  state: SessionState;
  /** The newest event of all. */
  last: RecordedOf<'session'>;
  /** How many events were read, uses included. */
  count: number;
};

/** Folds a session's events, oldest first; null if there is none. */
export async function readStory(
  source: AsyncIterable<readonly RecordedEvent[]> | Iterable<readonly RecordedEvent[]>,
): Promise<Story | null> {
  const events: RecordedOf<'session'>[] = [];
  const states: SessionState[] = [];
  let end: Pick<Story, 'end' | 'state'> | null = null;
  let state: SessionState | null = null;
  let count = 0;
  for await (const batch of source)
    for (const event of batch) {
      if (!isOf('session', event)) continue;
      state = event.state ?? evolve(state, event, event.aggregate);
      count += 1;
      const before = events.at(-1);
      if (before !== undefined && isUse(before) && isUse(event)) events.pop();
      events.push(event);
      if (!isUse(event)) states.push(state);
      if (isChange(event) || end === null) end = { end: event, state };
    }
  const last = events.at(-1);
  return end === null || last === undefined
    ? null
    : { ...end, events, fleet: fleetIn(states), last, count };
}

/** The session in a sentence. `counted`: its events, in words. */
export function summaryOf({ state, count }: Story, counted = `${count} events`): string {
  const { id, organizationId, status, endedReason, startedAt, createdAt, endedAt } = state;
  const who = `Session ${id} of organization ${organizationId}`;
  if (endedAt === null) return `${who} has not ended: it is ${status} (${counted}).`;
  const whole = formatDuration(Date.parse(endedAt) - Date.parse(createdAt));
  const active =
    startedAt === null
      ? 'and never had a browser'
      : `${formatDuration(Date.parse(endedAt) - Date.parse(startedAt))} of it with a browser`;
  return `${who} ${status} (${endedReason}) at ${endedAt}, after ${whole}, ${active} (${counted}).`;
}

/** The related events without the uses; every minute of use is an event, so only the last stays. */
export function withoutUses(related: readonly RecordedEvent[]): RecordedEvent[] {
  const lastUse = related.findLast(isUse);
  return related.filter((event) => !isUse(event) || event === lastUse);
}

/** Neither use nor a state that was carried forward explains where a session is. */
function isChange(event: RecordedEvent): boolean {
  return !isUse(event) && event.type !== 'session.carried-forward';
}

function isUse({ type }: RecordedEvent): boolean {
  return type === 'session.accessed';
}
