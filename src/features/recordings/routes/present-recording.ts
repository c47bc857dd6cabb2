import type { RecordingIndex } from '#src/features/recordings/recording-index.ts';
import type { Recording } from './schemas.ts';

/** A recording as the API answers it. @param endedAt the end of the session; null: it goes on */
export function presentRecording(
  id: string,
  { segments, gaps, events, chain }: RecordingIndex,
  endedAt: string | null,
): Recording {
  return {
    session_id: id,
    started_at: segments[0]?.startedAt ?? null,
    ended_at: endedAt,
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    segments: segments.map((segment) => ({
      number: segment.number,
      name: segment.key.slice(segment.key.lastIndexOf('/') + 1),
      started_at: segment.startedAt,
      ended_at: segment.endedAt,
      full: segment.full,
      bytes: segment.bytes,
      sha256: segment.sha256,
      recorded: segment.recorded,
    })),
    gaps: gaps.map(({ from, until, reason }) => ({ from, until: until ?? null, reason })),
    events,
    chain,
  };
}
