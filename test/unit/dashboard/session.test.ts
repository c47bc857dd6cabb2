import { describe, expect, it } from 'vitest';
import {
  chainOf,
  costsOf,
  countAt,
  kindOf,
  timelineOf,
  type HistoryEvent,
  type Why,
} from '#src/apps/dashboard/session/history.ts';
import { readable, withoutName } from '#src/apps/dashboard/session/sentence.ts';
import { snippetsFor } from '#src/apps/dashboard/session/snippets.ts';

const service = { kind: 'service', id: 'provisioner' };

function event(sequence: number, type: string, more: Partial<HistoryEvent> = {}): HistoryEvent {
  return {
    sequence,
    id: `evt_${sequence}`,
    type,
    time: `2026-11-20T09:30:00.0${sequence}Z`,
    actor: service,
    because_of: null,
    data: {},
    changes: [],
    state: { id: 'ses_1' } as HistoryEvent['state'],
    ...more,
  };
}

const requested = event(10, 'session.requested', {
  data: { name: 'shop', expiresAt: '2026-11-20T11:30:00.000Z', creditsReserved: 120 },
  changes: [{ field: 'creditsReserved', to: 120 }],
});
const extended = event(20, 'session.extended', {
  data: { byMs: 600_000, expiresAt: '2026-11-20T11:40:00.000Z' },
  changes: [{ field: 'creditsReserved', from: 120, to: 130 }],
});
const asked = event(30, 'session.stop-requested', { data: { reason: 'user' } });
const stopped = event(40, 'session.stopped', {
  because_of: { sequence: 30, type: asked.type, id: asked.id },
  data: { creditsUsed: 7, creditsRefunded: 123 },
  changes: [{ field: 'creditsUsed', from: null, to: 7 }],
});
const events = [requested, extended, asked, stopped];

describe('the timeline', () => {
  it('has the session’s events and those around it, in the order of the log', () => {
    const around = { type: 'workload.assigned', sentence: 'a', actor: service, time: stopped.time };
    const own = { ...around, sequence: 20, type: 'session.extended' };
    const why: Why = {
      summary: '',
      chain: [],
      black_box: null,
      related: [own, { ...around, sequence: 15 }],
    };
    const lines = timelineOf(events, why);
    expect(lines.map(({ sequence }) => sequence)).toEqual([10, 15, 20, 30, 40]);
    expect(lines.map(({ event: of }) => of !== null)).toEqual([true, false, true, true, true]);
    expect(lines[0]?.sentence).toContain('session "shop" was requested');
    expect(timelineOf(events, null)).toHaveLength(4);
  });

  it.each([
    ['session.requested', 'life'],
    ['session.accessed', 'connections'],
    ['session.access-rotated', 'connections'],
    ['session.handoff-taken', 'people'],
    ['session.share-used', 'people'],
    ['ledger.slot-released', 'browser and credits'],
    ['workload.idle', 'browser and credits'],
  ])('%s is of the kind %s', (type, kind) => expect(kindOf(type)).toBe(kind));
});

describe('a moment', () => {
  it('is after the events until then', () => {
    expect(countAt(events, null)).toBe(null);
    expect(countAt(events, { sequence: 5 })).toBe(0);
    expect(countAt(events, { sequence: 29 })).toBe(2);
    expect(countAt(events, { sequence: 40 })).toBe(4);
    expect(countAt(events, { time: extended.time })).toBe(2);
    expect(countAt(events, { time: '2026-11-20T09:29:00.000Z' })).toBe(0);
    expect(countAt([], { sequence: 1 })).toBe(0);
  });

  it('has its causes', () => {
    expect(chainOf(events).map(({ sequence }) => sequence)).toEqual([40, 30]);
    expect(chainOf(events.slice(0, 2)).map(({ sequence }) => sequence)).toEqual([20]);
    expect(chainOf([])).toEqual([]);
    const circle = event(50, 'session.stopped', {
      because_of: { sequence: 50, type: 'session.stopped', id: 'evt_50' },
      data: { creditsUsed: 1, creditsRefunded: 0 },
    });
    expect(chainOf([circle])).toHaveLength(1);
  });
});

it('the cost is what each event reserved, and what was used', () => {
  expect(costsOf(events).map(({ sequence, credits }) => [sequence, credits])).toEqual([
    [10, 120],
    [20, 10],
    [40, 7],
  ]);
});

it('sentences have times as people read them, and do not name the session of the page', () => {
  expect(readable('it ended at 2026-11-20T09:30:00.041Z.\noutput', () => 'noon')).toBe(
    'It ended at noon.',
  );
  const summary = 'Session ses_1 of organization acme has not ended: it is active (4 events).';
  expect(withoutName(summary)).toBe('This session has not ended: it is active (4 events).');
});

it('snippets hold the address as a string, whatever is in it', () => {
  for (const { text } of snippetsFor('ses_1', 'ws://a/"b', 'http://a').slice(0, 3))
    expect(text).toContain(String.raw`"ws://a/\"b"`);
});
