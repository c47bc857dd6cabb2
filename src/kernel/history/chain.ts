import { isOf, type RecordedEvent, type RecordedOf } from '#events/events.ts';
import { describeEvent } from './describe-event.ts';

/** A link of the chain: an event, or (null) a timer that fired, which leaves no event. */
export type Link = { words: string; event: RecordedEvent | null };

/**
 * The chain of causes of the session's last event, from that event back to the root cause: a
 * request, a browser that was closed or crashed, or a lost server.
 * @param related all events of the session, its browsers, servers and ledger, oldest first
 */
export function causesOf(end: RecordedOf<'session'>, related: readonly RecordedEvent[]): Link[] {
  const chain: Link[] = [];
  const seen = new Set<string>();
  for (let event: RecordedEvent | null = end; event !== null && !seen.has(event.id);) {
    seen.add(event.id);
    chain.push({ words: describeEvent(event), event });
    const timer = timerOf(event);
    if (timer !== null) chain.push({ words: `the timer "${timer}" fired`, event: null });
    event = causeOf(event, timer, related);
  }
  return chain;
}

/** The timer that triggered the event; null if none did. */
function timerOf({ metadata: { actor } }: RecordedEvent): string | null {
  const [role, what] = actor.id.split('/');
  const isTimer = actor.kind === 'service' && role === 'timekeeper' && what !== undefined;
  return isTimer && what !== 'lost-server' && what !== 'lost-client' ? what : null;
}

function causeOf(
  event: RecordedEvent,
  timer: string | null,
  related: readonly RecordedEvent[],
): RecordedEvent | null {
  const { causationId, commandId } = event.metadata;
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

/** The event that set the timer: the newest of those that reschedule it. */
function armedBy(timer: string, last: Last): RecordedEvent | null {
  if (timer === 'idle') return last('session.accessed', 'session.activated');
  if (timer.startsWith('handoff')) return last('session.handoff-requested');
  if (timer.startsWith('queue')) return last('session.requested', 'session.requeued');
  return last('session.extended', 'session.requested');
}

function isStopOf(commandId: string) {
  return ({ type, metadata }: RecordedEvent) =>
    type === 'session.stop-requested' && metadata.commandId === commandId;
}

/**
 * The event that made the session fail. It may be recorded after session.failed, because the
 * provisioner reports to the session first.
 */
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
