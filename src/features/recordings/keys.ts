/**
 * The names of segments in the object store. A name has what the index of a recording needs, so
 * that segments are known before their event is stored, as after the end of a process.
 */
type SessionRef = { organizationId: string; id: string };
/** Times in milliseconds since the epoch. */
export type NamedSegment = { number: number; startedAt: number; endedAt: number; full: boolean };

const DIGITS = 8;
const NAME = /\/(\d{8})-(\d{1,15})-(\d{1,15})-([fp])$/;

/** What the names of a session's segments begin with. */
export function recordingPrefix({ organizationId, id }: SessionRef): string {
  return `recordings/${organizationId}/${id}/`;
}

/** The name of a segment; the order of names is that of the segments. */
export function segmentKey(session: SessionRef, segment: NamedSegment): string {
  const { number, startedAt, endedAt, full } = segment;
  const counted = String(number).padStart(DIGITS, '0');
  return `${recordingPrefix(session)}${counted}-${startedAt}-${endedAt}-${full ? 'f' : 'p'}`;
}

/** What a name says; null: it is no segment's. */
export function parseSegmentKey(key: string): NamedSegment | null {
  const [, number, startedAt, endedAt, full] = NAME.exec(key) ?? [];
  if (number === undefined) return null;
  return {
    number: Number(number),
    startedAt: Number(startedAt),
    endedAt: Number(endedAt),
    full: full === 'f',
  };
}
