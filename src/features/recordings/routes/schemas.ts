import { Type, type Static } from 'typebox';
import { RECORDING_GAP_REASONS, recordingGapReasons } from '#events/session/recording.ts';
import { Count, Nullable, Timestamp, Words } from '#src/roles/api/schemas/fields.ts';

/** Schemas of recordings. */

const STARTED = '2026-11-20T09:30:00.210Z';
const ENDED = '2026-11-20T09:30:05.180Z';
const HASH = '6e5c17f4b1b8bb05c9b0ad2b2d3e5c0c8bd0e8a7cbfae3ab5d4ae6d9c8f7a1b2';
const NAME = '00000001-1795253400210-1795253405180-f';

export const SegmentPath = Type.Object({
  id: Type.String({ description: 'the session’s id' }),
  segment: Type.String({ description: '`name` of a segment, as the recording has it' }),
});

const RecordingSegment = Type.Object(
  {
    number: Type.Integer({ minimum: 1, examples: [1] }),
    name: Type.String({ examples: [NAME], description: 'for the path of the segment' }),
    started_at: Timestamp(STARTED, 'time of its first message'),
    ended_at: Timestamp(ENDED, 'time of its last message; nothing has changed until the next one'),
    full: Type.Boolean({ description: 'true: it begins with the whole screen', examples: [true] }),
    bytes: Count(61_200),
    sha256: Type.String({ examples: [HASH], description: 'of its bytes, hexadecimal' }),
    recorded: Type.Boolean({
      description: 'true: the session’s events have its hash; they get it within a minute',
      examples: [true],
    }),
  },
  { title: 'RecordingSegment' },
);

const gapReasons = [...recordingGapReasons, 'missing'] as const;

const RecordingGap = Type.Object(
  {
    from: Timestamp(ENDED),
    until: Nullable(Timestamp(ENDED), { description: 'null: nothing is recorded after it' }),
    reason: Words(gapReasons, {
      description: `${RECORDING_GAP_REASONS}; missing: its segment is gone`,
      examples: ['restart'],
    }),
  },
  { title: 'RecordingGap' },
);

const RecordedEvent = Type.Object(
  {
    sequence: Count(48_211, 'position in the event store'),
    type: Type.String({ examples: ['session.handoff-requested'] }),
    at: Timestamp(STARTED),
  },
  { title: 'RecordedEvent' },
);

export const Recording = Type.Object(
  {
    session_id: Type.String({ examples: ['ses_J5mYt3QKX2m0bq1uHcR8Vw'] }),
    started_at: Nullable(Timestamp(STARTED), { description: 'null: there is no segment yet' }),
    ended_at: Nullable(Timestamp(ENDED), {
      description: 'end of the session; null: the recording goes on',
      examples: [null],
    }),
    bytes: Count(61_200),
    segments: Type.Array(RecordingSegment),
    gaps: Type.Array(RecordingGap, { description: 'times that are not in the recording' }),
    events: Type.Array(RecordedEvent, {
      description: 'what happened in the session, to find it in the recording; at most 1,000',
    }),
    chain: Nullable(Type.String({ examples: [HASH] }), {
      description: 'hash over the hashes of all recorded segments; null: none is recorded',
    }),
  },
  { title: 'Recording' },
);
export type Recording = Static<typeof Recording>;
