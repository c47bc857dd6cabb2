import type {
  RecordingGap,
  RecordingGapReason,
  RecordingSegment,
} from '#events/session/recording.ts';
import type { RefOf } from '#events/events.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import type { ObjectStore, StoredObject } from '#src/kernel/objects/object-store.ts';
import { parseSegmentKey, recordingPrefix } from './keys.ts';

/** What there is of a session's recording: from its events and from the object store. */
export type RecordingIndex = {
  /** In their order; those that the object store has. */
  segments: IndexedSegment[];
  /** In their order; times that were not recorded, and those whose segment is gone. */
  gaps: (Omit<RecordingGap, 'reason'> & { reason: RecordingGapReason | 'missing' })[];
  /** The chain after the last recorded segment; null: none is recorded. */
  chain: string | null;
  /** What else happened, for the timeline; at most 1,000 events. */
  events: { sequence: number; type: string; at: string }[];
  /** Whether the events name segments, whatever the object store has. */
  wasStored: boolean;
};

/** `recorded`: its hash is in the event log; it gets there within a minute. */
export type IndexedSegment = RecordingSegment & { key: string; recorded: boolean };

const EVENTS_MAX = 1_000;
const STORED = 'session.recording-stored';
/** Events that people look for in a recording. */
const shown = [
  'session.activated',
  'session.extended',
  'session.updated',
  'session.handoff-requested',
  'session.handoff-taken',
  'session.handoff-completed',
  'session.handoff-expired',
  'session.share-created',
  'session.share-used',
  'session.expiry-warning',
  'session.stop-requested',
  'session.stopped',
  'session.failed',
];
const types = new Set([STORED, ...shown]);

/** @throws Unavailable: the event store or the object store; WrittenByNewer */
export async function readRecordingIndex(
  eventStore: Pick<EventStore, 'history'>,
  objects: Pick<ObjectStore, 'list'>,
  session: RefOf<'session'>,
): Promise<RecordingIndex> {
  // Before the events: a segment that is reported meanwhile is found in both.
  const objectsByNumber = await listSegments(objects, session);
  const index: RecordingIndex = {
    segments: [],
    gaps: [],
    chain: null,
    events: [],
    wasStored: false,
  };
  let last = 0;
  for await (const event of eventStore.history<'session'>(session, { types })) {
    if (event.type === STORED) {
      const { segments, gaps, chain } = event.data;
      index.gaps.push(...gaps);
      if (segments.length === 0) continue;
      index.chain = chain;
      index.wasStored = true;
      for (const segment of segments) {
        last = segment.number;
        const found = objectsByNumber.get(segment.number)?.find(isOf(segment));
        if (found !== undefined)
          index.segments.push({ ...segment, key: found.key, recorded: true });
        else
          index.gaps.push({ from: segment.startedAt, until: segment.endedAt, reason: 'missing' });
      }
    } else if (index.events.length < EVENTS_MAX)
      index.events.push({ sequence: event.sequence, type: event.type, at: event.time });
  }
  for (const [number, found] of objectsByNumber)
    if (number > last) index.segments.push(...found.slice(-1).map(unrecorded));
  index.gaps.sort((one, other) => one.from.localeCompare(other.from));
  return index;
}

/** By their numbers; a number has several only where one was stored although that failed. */
async function listSegments(
  objects: Pick<ObjectStore, 'list'>,
  session: RefOf<'session'>,
): Promise<Map<number, StoredObject[]>> {
  const found = new Map<number, StoredObject[]>();
  for await (const object of objects.list(recordingPrefix(session))) {
    const named = parseSegmentKey(object.key);
    if (named === null) continue;
    found.set(named.number, [...(found.get(named.number) ?? []), object]);
  }
  return found;
}

/** Whether an object is the segment: by its name, not by its bytes, which `verify` checks. */
function isOf({ startedAt, endedAt }: RecordingSegment): (object: StoredObject) => boolean {
  return ({ key }) => {
    const named = parseSegmentKey(key);
    return named?.startedAt === Date.parse(startedAt) && named.endedAt === Date.parse(endedAt);
  };
}

function unrecorded(object: StoredObject): IndexedSegment {
  const { key, bytes, sha256 } = object;
  const named = parseSegmentKey(key);
  if (named === null) throw new RangeError(`${key} is no segment`);
  const { number, full } = named;
  const startedAt = new Date(named.startedAt).toISOString();
  const endedAt = new Date(named.endedAt).toISOString();
  return { number, startedAt, endedAt, full, bytes, sha256, key, recorded: false };
}
