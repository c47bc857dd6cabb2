import { createReplay, type Replay } from '#src/features/recordings/replay.ts';
import { readSegment } from '#src/features/recordings/segment-format.ts';
import { send } from '../api/api-client.ts';

/** GET /api/sessions/{id}/recording, as far as the page uses it. */
export type RecordingIndex = {
  started_at: string | null;
  ended_at: string | null;
  bytes: number;
  segments: { name: string; started_at: string; ended_at: string; full: boolean }[];
  gaps: { from: string; until: string | null; reason: string }[];
  events: { sequence: number; type: string; at: string }[];
};

/** When a recording begins and ends, milliseconds since the epoch; null: no segment yet. */
export function spanOf({ segments, ended_at: ended }: RecordingIndex) {
  const [first, last] = [segments[0], segments.at(-1)];
  if (first === undefined || last === undefined) return null;
  const from = Date.parse(first.started_at);
  const until = Math.max(Date.parse(last.ended_at), ended === null ? 0 : Date.parse(ended));
  return { from, until: Math.max(until, from + 1) };
}

/** The gap that has the moment; null: it was recorded. */
export function gapAt({ gaps }: Pick<RecordingIndex, 'gaps'>, at: number) {
  const isIn = ({ from, until }: RecordingIndex['gaps'][number]) =>
    Date.parse(from) <= at && (until === null || at < Date.parse(until));
  return gaps.find(isIn) ?? null;
}

/** `3:07`, or `1:02:07`: from the recording's start. */
export function clockOf(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const tail = String(seconds % 60).padStart(2, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${tail}` : `${minutes}:${tail}`;
}

/** Shows the recording of a session; segments are read when they are needed. */
export function replayOf(id: string, index: () => RecordingIndex): Replay {
  const path = `/api/sessions/${encodeURIComponent(id)}/recording`;
  const segments = () =>
    index().segments.map(({ name, started_at: startedAt, ended_at: endedAt, full }) => ({
      name,
      full,
      startedAt: Date.parse(startedAt),
      endedAt: Date.parse(endedAt),
    }));
  return createReplay(segments, async (name) => {
    const { body } = await send(`${path}/${name}`);
    if (body === null) throw new Error('The segment is empty.');
    const inflated = new Response(body.pipeThrough(new DecompressionStream('deflate')));
    return readSegment(new Uint8Array(await inflated.arrayBuffer()));
  });
}

/** An idle time is cut to this long before the next change. */
const IDLE_MS = 1_000;

/**
 * Where playing is after a while. @param next when the picture changes next; null: never
 */
export function advance(
  at: number,
  elapsedMs: number,
  { speed, skipsIdle, next }: { speed: number; skipsIdle: boolean; next: number | null },
): number {
  const after = at + elapsedMs * speed;
  const isIdle = skipsIdle && next !== null && next - after > IDLE_MS;
  return isIdle ? next - IDLE_MS / 2 : after;
}
