import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import { inWords } from './describe-event.ts';

/** A link of the chain: an event, or a timer that fired, which the log knows by its effect. */
export type Link = { words: string; event: RecordedEvent | null };

/**
 * What led to the session's last event, the end first and what nothing led to last: a person's
 * request, a browser that its user closed or that ended by itself, a server that was lost.
 * @param related all events of the session, its browsers, servers and ledger, oldest first
 */
export function chainTo(end: RecordedOf<'session'>, related: readonly RecordedEvent[]): Link[] {
  const chain: Link[] = [];
  const seen = new Set<string>();
  for (let event: RecordedEvent | null = end; event !== null && !seen.has(event.id);) {
    seen.add(event.id);
    chain.push({ words: inWords(event), event });
    const timer = timerOf(event);
    if (timer !== null) chain.push({ words: `the timer "${timer}" fired`, event: null });
    event = causeOf(event, timer, related);
  }
  return chain;
}

/** The timer by whose firing an event was decided; null: by none. */
function timerOf({ cause: { actor } }: RecordedEvent): string | null {
  const [role, what] = actor.id.split('/');
  const isTimer = actor.kind === 'service' && role === 'timekeeper' && what !== undefined;
  return isTimer && what !== 'lost-server' ? what : null;
}

function causeOf(
  event: RecordedEvent,
  timer: string | null,
  related: readonly RecordedEvent[],
): RecordedEvent | null {
  const { causationId, commandId } = event.cause;
  const named = related.find(({ id }) => id === causationId);
  if (named !== undefined) return named;
  const before = related.filter(({ sequence }) => sequence < event.sequence);
  const last = (...types: string[]) => before.findLast(({ type }) => types.includes(type)) ?? null;
  if (timer !== null) return armedBy(timer, last);
  if (event.type === 'session.stopped')
    return before.findLast(isStopOf(commandId)) ?? last('session.stop-requested');
  if (event.type === 'session.failed') return reasonOf(event, related);
  if (event.type !== 'session.stop-requested') return null;
  if (event.data.reason === 'browser_closed') return endOfBrowser(related);
  return event.data.reason === 'operator' ? last('server.draining') : null;
}

type Last = (...types: string[]) => RecordedEvent | null;

/** The event after which the timer was set: the newest of those that move its moment. */
function armedBy(timer: string, last: Last): RecordedEvent | null {
  if (timer === 'idle') return last('session.accessed', 'session.activated');
  if (timer.startsWith('queue')) return last('session.requested', 'session.requeued');
  return last('session.extended', 'session.requested');
}

function isStopOf(commandId: string) {
  return ({ type, cause }: RecordedEvent) =>
    type === 'session.stop-requested' && cause.commandId === commandId;
}

/** What failed under it. It is told after the session's failure, for the caller is told first. */
function reasonOf(event: RecordedEvent, related: readonly RecordedEvent[]): RecordedEvent | null {
  if (!isOf('session', event) || event.type !== 'session.failed') return null;
  const { reason } = event.data;
  if (reason === 'server_lost') {
    const lost = related.find(({ type }) => type === 'server.lost' || type === 'server.left');
    if (lost !== undefined) return lost;
  }
  return endOfBrowser(related);
}

function endOfBrowser(related: readonly RecordedEvent[]): RecordedEvent | null {
  return related.findLast(({ type }) => type === 'workload.terminated') ?? null;
}
