import { describe, expect, it } from 'vitest';
import { decode } from '#events/codec.ts';
import { isOf, type Aggregates } from '#events/events.ts';
import { streamFilter, type AggregateKind } from '#events/subjects.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import {
  endedSessionId,
  endedSessions,
  EVENTS_PER_SESSION,
} from '#test/support/events/ended-sessions.ts';

const SESSIONS = 10;
const ENDED_AT = Date.parse('2026-02-01T00:00:00.000Z');
const organizations = [
  { id: 'org_1', tier: 'pro', apiKey: 'bss_org_1_0123456789' },
  { id: 'org_2', tier: 'max', apiKey: 'bss_org_2_0123456789' },
] as const;
const endedAt = (session: number) => ENDED_AT + session;

const events = [...endedSessions({ sessions: SESSIONS, organizations, endedAt })].map(
  ({ subject, headers, body }, index) => {
    const lines = headers.split('\r\n').map((line) => line.split(': ') as [string, string]);
    const values = new Map(lines);
    return decode(subject, (name) => values.get(name) ?? '', body, index + 1);
  },
);

describe('generated ended sessions', () => {
  it('are events with ids of their own', () => {
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(events).toHaveLength(SESSIONS * EVENTS_PER_SESSION + 3 * organizations.length);
  });

  it('carry the state that their history folds to', () => {
    const states = new Map<string, Aggregates[AggregateKind]['state']>();
    for (const event of events) {
      const key = streamFilter(event.aggregate);
      const state = evolve(event.aggregate, states.get(key) ?? null, event);
      expect(event.state).toEqual(state);
      states.set(key, state);
    }
  });

  it('have ended when the caller says, and their browsers with them', () => {
    const ends = events.flatMap((event) =>
      isOf('session', event) && event.state !== null && isFinal(event.state.status)
        ? [[event.state.id, Date.parse(event.state.endedAt ?? '')]]
        : [],
    );
    expect(ends).toEqual(
      Array.from({ length: SESSIONS }, (_, number) => [endedSessionId(number), endedAt(number)]),
    );
    expect(events.filter(({ type }) => type === 'workload.terminated')).toHaveLength(SESSIONS);
  });

  it('leave ledgers without slots in use', () => {
    for (const { id } of organizations) {
      const last = events.findLast(
        (event) => isOf('ledger', event) && event.aggregate.organizationId === id,
      );
      expect(last?.state).toMatchObject({
        slotsInUse: 0,
        creditsReserved: 0,
        sessionsEnded: SESSIONS / organizations.length,
      });
    }
  });
});
