import type { StreamSize } from './stream-sizes.ts';

/**
 * How much longer than `retainEndedMs` the oldest event has been in the event store, in ms; 0: not
 * longer. Null: nothing is archived. The newest event always stays, however old it is.
 */
export function archiveLagMs(
  events: Pick<StreamSize, 'messages' | 'oldestAt'> | undefined,
  retainEndedMs: number | null,
  now: number,
): number | null {
  if (retainEndedMs === null) return null;
  if (events === undefined || events.oldestAt === null || events.messages === 1) return 0;
  return Math.max(0, now - Date.parse(events.oldestAt) - retainEndedMs);
}
