import type { Recording } from '#events/session/recording.ts';
import type { SessionEvent, SessionState } from '#events/session.ts';
import type { StoreRecording } from './commands.ts';

type Stored = Extract<SessionEvent, { type: 'session.recording-stored' }>['data'];

/** How far a session's recording is after the event. */
export function recordingAfter(
  before: Recording | undefined,
  { segments, gaps, chain, until }: Stored,
): Recording {
  const isOver = before?.isOver === true || gaps.some(({ reason }) => reason === 'limit');
  return {
    segments: segments.at(-1)?.number ?? before?.segments ?? 0,
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, before?.bytes ?? 0),
    chain,
    until,
    ...(isOver ? { isOver } : {}),
  };
}

/**
 * Records what was stored of a recording. A report that does not go on from the last one is a
 * repeat, or comes from a process that is not in charge any more: nothing changes.
 */
export function storeRecording(
  { segments, gaps, chain, until }: StoreRecording,
  session: SessionState,
): SessionEvent[] {
  if (session.status !== 'active' && session.status !== 'stopping') return [];
  const next = (session.recording?.segments ?? 0) + 1;
  if (segments.some(({ number }, index) => number !== next + index)) return [];
  return [{ type: 'session.recording-stored', data: { segments, gaps, chain, until } }];
}
