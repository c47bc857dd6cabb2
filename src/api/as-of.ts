import { Type } from 'typebox';
import { reject, type Rejected } from '../errors.ts';
import type { Documented } from './route.ts';

/** ISO 8601 in UTC, to the second or finer; nothing beyond the millisecond counts. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|\+00:00)$/;

/** The parameter of every read that can be asked of the past. */
export const asOfParameter: Record<'as_of', Documented> = {
  as_of: {
    schema: Type.String({ format: 'date-time', examples: ['2026-11-20T09:30:00.000Z'] }),
    description:
      'answers as it would have been answered at that moment, from the log: ISO 8601 UTC, its ' +
      'millisecond included, by the clock of the event log, and not in the future',
  },
};

/**
 * The moment that is asked for (ms since the epoch), null where none is. Refused: what is no time
 * in UTC, one that no calendar has, and the future, of which the log holds nothing yet.
 */
export function readAsOf(sent: unknown, now: number): number | Rejected | null {
  if (sent === undefined) return null;
  const text = typeof sent === 'string' && TIME.test(sent) ? sent : '';
  const at = Date.parse(text);
  // What JavaScript would roll over into the next month is no date.
  if (Number.isNaN(at) || new Date(at).toISOString().slice(0, 19) !== text.slice(0, 19))
    return invalid('as_of must be one time in UTC, like 2026-11-20T09:30:00.000Z.', sent);
  if (at > now) return invalid('as_of is in the future.', sent);
  return at;
}

function invalid(message: string, sent: unknown): Rejected {
  return reject('INVALID_REQUEST', { as_of: sent }, { message });
}
