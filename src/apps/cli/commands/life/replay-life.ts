import { isDeepStrictEqual } from 'node:util';
import { decode } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import type { AggregateKind } from '#events/subjects.ts';
import { evolve } from '#src/kernel/event-store/load-state.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import type { Life } from './life.ts';

/** A recorded life, decoded and folded by this build. */
export type Replayed = {
  sessionId: string;
  /** Events that were folded. */
  folded: number;
  /** Those of them whose recorded state was compared with the folded one. */
  compared: number;
  differences: readonly Difference[];
  /** Events that this build cannot decode or fold. */
  unreadable: readonly UnreadableRecord[];
};

/** A field of a state; undefined: the state has no such field. */
export type Difference = {
  sequence: number;
  type: string;
  /** As `assignment.serverId`; empty: the whole state. */
  path: string;
  recorded: unknown;
  folded: unknown;
};

type UnreadableRecord = { sequence: number; subject: string; reason: string };

/** The state of a stream before its next event; `isKnown` false: it cannot be folded from here. */
type Before = { isKnown: true; state: object | null } | { isKnown: false };

/**
 * Folds each event of the life, and compares the result with the state that the event carries. A
 * state of another version is not compared.
 */
export function replayLife(life: Life): Replayed {
  const streams = new Map<string, Before>();
  const differences: Difference[] = [];
  const unreadable: UnreadableRecord[] = [];
  const given = new Set(life.ledgerBefore.map(({ sequence }) => sequence));
  let [folded, compared] = [0, 0];

  function take(record: RawRecord): Before {
    const { sequence } = record;
    const event = decodeRecord(record);
    const carried = event.state;
    const before = streams.get(streamOf(record)) ?? { isKnown: true, state: null };
    if (given.has(sequence) || !before.isKnown)
      return carried === null ? { isKnown: false } : { isKnown: true, state: carried };
    const state = fold(before.state, event);
    folded += 1;
    if (carried === null) return { isKnown: true, state };
    compared += 1;
    for (const difference of differencesBetween(carried, state))
      differences.push({ sequence, type: event.type, ...difference });
    // From the recorded state on: one difference is reported once, not after each further event.
    return { isKnown: true, state: carried };
  }
  const all = [...life.ledgerBefore, ...life.records];
  for (const record of all.toSorted((one, other) => one.sequence - other.sequence)) {
    try {
      streams.set(streamOf(record), take(record));
    } catch (error) {
      const { sequence, subject } = record;
      const reason = error instanceof Error ? error.message : String(error);
      unreadable.push({ sequence, subject, reason });
      streams.set(streamOf(record), { isKnown: false });
    }
  }
  return { sessionId: life.sessionId, folded, compared, differences, unreadable };
}

/** The record's subject without the event's name. */
function streamOf({ subject }: RawRecord): string {
  return subject.slice(0, subject.lastIndexOf('.'));
}

function decodeRecord({ subject, headers, body, sequence }: RawRecord): RecordedEvent {
  const values = new Map(headers);
  return decode(subject, (name) => values.get(name) ?? '', body, sequence);
}

/** As JSON, because a field that is undefined is not stored. */
function fold(before: object | null, event: RecordedEvent): object {
  const state = evolve<AggregateKind>(event.aggregate, before as never, event);
  return JSON.parse(JSON.stringify(state)) as object;
}

type FieldDifference = Pick<Difference, 'path' | 'recorded' | 'folded'>;

/** The fields that differ, each by its path. Lists of different lengths differ as a whole. */
function differencesBetween(recorded: unknown, folded: unknown, path = ''): FieldDifference[] {
  if (isDeepStrictEqual(recorded, folded)) return [];
  if (!isFields(recorded) || !isFields(folded)) return [{ path, recorded, folded }];
  const names = new Set([...Object.keys(recorded), ...Object.keys(folded)]);
  return [...names].flatMap((name) =>
    differencesBetween(recorded[name], folded[name], path === '' ? name : `${path}.${name}`),
  );
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
