import { Type } from 'typebox';
import { MOMENT_OR_DATE_PATTERN } from '#src/kernel/moment.ts';
import { invalid } from '../http/validation.ts';

/** A query parameter of a range: an instant, or a date in UTC. */
export function timeParameter(name: string, description: string) {
  return Type.Optional(
    Type.String({
      pattern: MOMENT_OR_DATE_PATTERN,
      examples: ['2026-11-01', '2026-11-20T09:30:00.000Z'],
      description,
      refusal: (sent: unknown) =>
        invalid(
          { [name]: sent },
          `${name} must be a date, or a time like 2026-11-20T09:30:00.000Z.`,
        ),
    }),
  );
}
