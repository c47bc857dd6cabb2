import type { Handoff } from '#events/handoff.ts';
import type { SessionEvent, SessionState } from '#events/session.ts';

type HandoffEvent = Extract<SessionEvent, { type: `session.handoff-${string}` }>;

/** The session's hand-off after the event; an event of an earlier hand-off changes nothing. */
export function handoffAfter(
  { handoff }: Pick<SessionState, 'handoff'>,
  event: HandoffEvent,
): { handoff?: Handoff } {
  if (event.type === 'session.handoff-requested') {
    const { handoffId: id, instructions, by: requestedBy, at, expiresAt } = event.data;
    const asked = { instructions, requestedBy, requestedAt: at, expiresAt };
    return { handoff: { id, status: 'requested', ...asked } };
  }
  if (handoff === undefined || handoff.id !== event.data.handoffId) return {};
  switch (event.type) {
    case 'session.handoff-taken':
      return {
        handoff: { ...handoff, status: 'taken', takenBy: event.data.by, takenAt: event.data.at },
      };
    case 'session.handoff-completed': {
      const { at: endedAt, success, note } = event.data;
      return { handoff: { ...handoff, status: 'completed', endedAt, success, note } };
    }
    case 'session.handoff-expired':
      return { handoff: { ...handoff, status: 'expired', endedAt: event.data.at } };
  }
}

/** Whether the hand-off still waits for a person, or a person holds it. */
export function isOpenHandoff(handoff: Handoff | undefined): handoff is Handoff {
  return handoff?.status === 'requested' || handoff?.status === 'taken';
}

/** When the open hand-off expires (ms since the epoch); null: none is open. */
export function handoffEndsAt({ handoff }: Pick<SessionState, 'handoff'>): number | null {
  return isOpenHandoff(handoff) ? Date.parse(handoff.expiresAt) : null;
}

/** An open hand-off ends with its session. */
export function endedHandoff({ handoff }: Pick<SessionState, 'handoff'>, endedAt: string) {
  return isOpenHandoff(handoff)
    ? { handoff: { ...handoff, status: 'expired' as const, endedAt } }
    : {};
}
