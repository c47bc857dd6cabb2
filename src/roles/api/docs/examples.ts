import type { DocumentSchema } from './openapi-document.ts';

/**
 * An example that fits the schema: its own, or one made of its parts' examples. A property whose
 * `examples` are empty is left out.
 */
export function exampleOf(schema: DocumentSchema): unknown {
  const { examples, anyOf, properties, items } = schema;
  if (examples !== undefined) return examples[0];
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0]);
  if (properties !== undefined)
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([, property]) => property.examples?.length !== 0)
        .map(([name, property]) => [name, exampleOf(property)]),
    );
  if (items !== undefined) return [exampleOf(items)];
  return schema.type === 'object' ? {} : 'string';
}
