import { Type } from 'typebox';
import { reject, type Rejected } from '#src/errors.ts';
import { MOMENT_PATTERN, readMoment } from '#src/moment.ts';
import type { Documented } from '../http/route.ts';

/** The parameter of every read that can be asked of the past. */
export const asOfParameter: Record<'as_of', Documented> = {
  as_of: {
    schema: Type.String({
      format: 'date-time',
      pattern: MOMENT_PATTERN,
      examples: ['2026-11-20T09:30:00.000Z'],
    }),
    description:
      'answers as it would have been answered at that moment, from the log: RFC 3339, its ' +
      'millisecond included, by the clock of the event log, and not in the future',
  },
};

/**
 * The moment that is asked for (ms since the epoch; nothing finer counts), null where none is.
 * Refused: what is no time, one that no calendar has, and the future, of which the log holds
 * nothing yet.
 */
export function readAsOf(sent: unknown, now: number): number | Rejected | null {
  if (sent === undefined) return null;
  const at = readMoment(sent);
  if (at === null) return invalid('as_of must be one time, like 2026-11-20T09:30:00.000Z.', sent);
  if (at > now) return invalid('as_of is in the future.', sent);
  return at;
}

function invalid(message: string, sent: unknown): Rejected {
  return reject('INVALID_REQUEST', { as_of: sent }, { message });
}
