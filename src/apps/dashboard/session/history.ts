import type { RecordedEvent } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { describeEvent } from '#src/kernel/history/describe-event.ts';
import type { Moment } from '../shell/moment-text.ts';

type Actor = { kind: string; id: string; via?: string; client?: string };
type Cause = { sequence: number | null; type: string | null; id: string };
export type Change = { field: string; from?: unknown; to: unknown };

/** An event of GET /api/sessions/{id}/history. */
export type HistoryEvent = {
  sequence: number;
  id: string;
  type: string;
  time: string;
  actor: Actor;
  because_of: Cause | null;
  data: unknown;
  changes: Change[];
  state: SessionState;
};

/** GET /api/sessions/{id}/why. */
export type Why = {
  summary: string;
  chain: {
    sequence: number | null;
    sentence: string;
    actor: Actor | null;
    time: string | null;
  }[];
  /** What its browser told before the end, in sentences. */
  black_box: { told: string[]; thumbnail: boolean } | null;
  related: { sequence: number; type: string; sentence: string; actor: Actor; time: string }[];
};

/** What a line of the timeline is about, by which lines are shown or hidden. */
export const KINDS = ['life', 'connections', 'people', 'browser and credits'] as const;
export type Kind = (typeof KINDS)[number];

/** A line of the timeline. `event` is null where the event is not the session's own. */
export type Line = {
  sequence: number;
  type: string;
  time: string;
  sentence: string;
  actor: Actor;
  kind: Kind;
  event: HistoryEvent | null;
};

/** The session's events and what happened to its browser and credits, oldest first. */
export function timelineOf(events: readonly HistoryEvent[], why: Why | null): Line[] {
  const own = events.map((event): Line => ({
    ...event,
    sentence: sentenceOf(event),
    event,
    kind: kindOf(event.type),
  }));
  const around = (why?.related ?? [])
    .filter(({ type }) => !type.startsWith('session.'))
    .map((related): Line => ({ ...related, event: null, kind: kindOf(related.type) }));
  return [...own, ...around].toSorted((left, right) => left.sequence - right.sequence);
}

function sentenceOf({ type, data }: HistoryEvent): string {
  // What describes an event reads its type and data, and what organizations do not get nowhere.
  const event = { aggregate: { kind: 'session' }, type, data } as unknown as RecordedEvent;
  return describeEvent(event);
}

/** The causes of the last of these events: each because of the next. */
export function chainOf(events: readonly HistoryEvent[]): Why['chain'] {
  const byId = new Map(events.map((event) => [event.id, event]));
  const chain: Why['chain'] = [];
  let event = events.at(-1);
  while (event !== undefined && chain.length < events.length) {
    chain.push({ ...event, sentence: sentenceOf(event) });
    event = byId.get(event.because_of?.id ?? '');
  }
  return chain;
}

export function kindOf(type: string): Kind {
  if (!type.startsWith('session.')) return 'browser and credits';
  if (type.startsWith('session.access')) return 'connections';
  return /^session\.(handoff|share|updated)/.test(type) ? 'people' : 'life';
}

/**
 * How many of the events had happened at a moment; null: the moment is now.
 */
export function countAt(events: readonly HistoryEvent[], at: Moment | null): number | null {
  if (at === null) return null;
  const isAfter = (event: HistoryEvent) =>
    'sequence' in at ? event.sequence > at.sequence : event.time > at.time;
  const first = events.findIndex(isAfter);
  return first === -1 ? events.length : first;
}

/** A change of what the session costs, with the event that made it. One credit is one minute. */
export type CostLine = { sequence: number; what: string; credits: number };

export function costsOf(events: readonly HistoryEvent[]): CostLine[] {
  return events.flatMap(({ sequence, changes, type }) =>
    changes.flatMap(({ field, from, to }): CostLine[] => {
      if (field === 'creditsUsed' && typeof to === 'number')
        return [{ sequence, what: 'Used, from its start to its end', credits: to }];
      if (field !== 'creditsReserved' || typeof to !== 'number') return [];
      const before = typeof from === 'number' ? from : 0;
      const what =
        type === 'session.requested' ? 'Reserved by its request' : 'Reserved by its extension';
      return [{ sequence, what, credits: to - before }];
    }),
  );
}
