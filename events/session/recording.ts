import { Type, type Static } from 'typebox';
import { Moment } from '../fields.ts';

/** Segments and gaps that one event may have: what a minute brings, and what follows a failure. */
export const recordingBatchMax = 64;

const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256, hexadecimal' });
const Chain = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description:
    'SHA-256 of the chain before, hexadecimal, and the last segment’s hash: proves all segments ' +
    'up to this one',
});

/** A stored part of a recording: what the screen showed for some seconds. */
export const RecordingSegment = Type.Object({
  number: Type.Integer({ minimum: 1, description: 'counts up from 1, without a hole' }),
  startedAt: Moment,
  endedAt: Moment,
  full: Type.Boolean({ description: 'true: it begins with the whole screen' }),
  bytes: Type.Integer({ minimum: 1 }),
  sha256: Sha256,
});
export type RecordingSegment = Static<typeof RecordingSegment>;

/** For people who read a schema. */
export const RECORDING_GAP_REASONS =
  'slow_store: segments came faster than the object store took them; store_failed: it did not ' +
  'take one; screen_lost: the screen did not answer; restart: the server’s process ended and ' +
  'another one went on; handoff: a person had the session; limit: RECORDING_MAX_MB is reached';
/** Why a time of the session is not in its recording. */
const RecordingGapReason = Type.Union(
  [
    Type.Literal('slow_store'),
    Type.Literal('store_failed'),
    Type.Literal('screen_lost'),
    Type.Literal('restart'),
    Type.Literal('handoff'),
    Type.Literal('limit'),
  ],
  { description: RECORDING_GAP_REASONS },
);
export type RecordingGapReason = Static<typeof RecordingGapReason>;
export const recordingGapReasons = RecordingGapReason.anyOf.map((one) => one.const);

/** A time that was not recorded; without `until` the recording does not go on. */
export const RecordingGap = Type.Object({
  from: Moment,
  until: Type.Optional(Moment),
  reason: RecordingGapReason,
});
export type RecordingGap = Static<typeof RecordingGap>;

/** What was stored of a session's recording since the event before. */
export const recordingEvents = {
  'session.recording-stored': Type.Object({
    segments: Type.Array(RecordingSegment, {
      maxItems: recordingBatchMax,
      description: 'what was stored since the event before',
    }),
    gaps: Type.Array(RecordingGap, {
      maxItems: recordingBatchMax,
      description: 'times that are not in the recording, as far as they are over',
    }),
    chain: Chain,
    /** Recorded until then: from the last segment on nothing had changed. */
    until: Moment,
  }),
};

/** How far a session's recording is; absent: nothing is stored. */
export const Recording = Type.Object({
  segments: Type.Integer({ minimum: 0, description: 'number of the last segment' }),
  bytes: Type.Integer({ minimum: 0, description: 'of all segments' }),
  chain: Chain,
  until: Moment,
  isOver: Type.Optional(Type.Boolean({ description: 'true: RECORDING_MAX_MB is reached' })),
});
export type Recording = Static<typeof Recording>;
