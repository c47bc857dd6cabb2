import { Type } from 'typebox';
import { invalid } from '../http/validation.ts';

/** The query parameter of a page's length. */
export function limitParameter(fallback: number, max: number) {
  return Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: max,
      default: fallback,
      description: `length of the page, 1 to ${max}`,
      refusal: (limit: unknown) =>
        invalid({ limit }, `limit must be a whole number from 1 to ${max}.`),
    }),
  );
}

/** The query parameter of where a page begins. @param what is listed, in the plural */
export function offsetParameter(what: string) {
  return Type.Optional(
    Type.Integer({
      minimum: 0,
      default: 0,
      description: `number of ${what} to skip`,
      refusal: (offset: unknown) => invalid({ offset }, 'offset must be a whole number from 0 on.'),
    }),
  );
}

/** The sequence up to which a page of a list that is newest first goes. */
export const beforeParameter = Type.Optional(
  Type.String({
    pattern: '^[0-9]{1,15}$',
    description: '`next` of the previous page: what has a lower sequence',
    refusal: (before: unknown) => invalid({ before }, 'before must be what a page gave as next.'),
  }),
);
