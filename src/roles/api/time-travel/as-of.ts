import { Type } from 'typebox';
import type { Rejection } from '#src/kernel/errors.ts';
import { MOMENT_PATTERN, readMoment } from '#src/kernel/moment.ts';
import { invalid } from '../http/validation.ts';

/** The query parameter of every read that supports time travel. */
export const asOfParameter = {
  as_of: Type.Optional(
    Type.String({
      format: 'date-time',
      pattern: MOMENT_PATTERN,
      examples: ['2026-11-20T09:30:00.000Z'],
      description:
        'answers with the state at this time (RFC 3339, the millisecond included) by the clock ' +
        'of the event store; must not be in the future',
      refusal: (as_of: unknown) =>
        invalid({ as_of }, 'as_of must be one time, like 2026-11-20T09:30:00.000Z.'),
    }),
  ),
};

export const AsOfQuery = Type.Object(asOfParameter, { additionalProperties: false });

/**
 * The requested moment in ms since the epoch, null if there is none. A moment in the future is
 * refused: the event store has no events of it yet.
 */
export function readAsOf(sent: string | undefined, now: number): number | Rejection | null {
  const at = readMoment(sent);
  return at !== null && at > now ? invalid({ as_of: sent }, 'as_of is in the future.') : at;
}
