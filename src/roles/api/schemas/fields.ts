import { Type, type Static, type TSchema } from 'typebox';

/** Fields of several schemas. A schema with a `title` is a component of the document. */

/** One of these words. */
export function Words<const Word extends string>(words: readonly Word[], options: object) {
  return Type.Enum([...words], { type: 'string', ...options });
}

/**
 * A value or null. An object or null is an `anyOf`: client generators read `type: [object, null]`
 * as an object that is never null.
 */
export function Nullable<Schema extends TSchema>(schema: Schema, options: object = {}) {
  const { type } = schema as { type?: string };
  return Type.Unsafe<Static<Schema> | null>(
    type === undefined || type === 'object'
      ? { anyOf: [schema, { type: 'null' }], ...options }
      : { ...schema, ...options, type: [type, 'null'] },
  );
}

export function Timestamp(example: string, description = 'ISO 8601 UTC') {
  return Type.String({ format: 'date-time', description, examples: [example] });
}

export function Count(example: number, description?: string) {
  return Type.Integer({ minimum: 0, examples: [example], ...(description && { description }) });
}

/** Marks a documented schema whose value the handler checks, with its own error. */
export const CHECKED_BY_HANDLER = Symbol('checked by the handler');

/** The schema for the document alone: validation accepts any value, and none. */
export function checkedByHandler(schema: TSchema) {
  return { ...schema, [CHECKED_BY_HANDLER]: true };
}
