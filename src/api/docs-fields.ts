import type { DocumentSchema } from './openapi-schema.ts';

/** A document whose schemas are referred to by name: OpenAPI's and AsyncAPI's are alike in that. */
export type SchemaHolder = { components: { schemas: Record<string, DocumentSchema> } };

/** A row of a table; fields inside others are named by their way, `pagination.limit`. */
export type Field = { name: string; type: string; isRequired: boolean; description: string };

/** Deeper objects than this are told of as such. */
const DEPTH_MAX = 4;

/** The fields of a body or answer, those of inner objects after their owner. */
export function fieldsOf(
  schema: DocumentSchema,
  document: SchemaHolder,
  prefix = '',
  depth = 1,
): Field[] {
  const { properties = {}, required = [] } = resolve(schema, document);
  return Object.entries(properties).flatMap(([key, property]) => {
    const resolved = resolve(property, document);
    const name = prefix + key;
    const field = {
      name,
      type: typeOf(resolved),
      // Only where something may be left out is it worth saying what may not.
      isRequired: isInput(schema, document) && required.includes(key),
      description: resolved.description ?? '',
    };
    if (depth === DEPTH_MAX) return [field];
    const inner = resolved.items ?? objectOf(resolved);
    const way = resolved.items === undefined ? `${name}.` : `${name}[].`;
    return [field, ...fieldsOf(inner, document, way, depth + 1)];
  });
}

/** A type in words: `string or null`, `creating | queued | …`, `array`. */
export function typeOf(schema: DocumentSchema): string {
  if (schema.enum !== undefined) return schema.enum.map(String).join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.$ref !== undefined) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  const isTime = schema['format'] === 'date-time';
  const types = [schema.type ?? 'any']
    .flat()
    .map((type) => (isTime && type === 'string' ? 'timestamp' : type));
  const [from, to] = [schema['minimum'], schema['maximum']].map((bound) => bound?.toString());
  const range = from === undefined || to === undefined ? '' : ` ${from} to ${to}`;
  return types.join(' or ') + range;
}

/** Of an object or null the object. */
function objectOf(schema: DocumentSchema): DocumentSchema {
  const [first, second] = schema.anyOf ?? [];
  return first !== undefined && second?.type === 'null' ? first : schema;
}

function isInput(schema: DocumentSchema, document: SchemaHolder): boolean {
  return resolve(schema, document).additionalProperties === false;
}

function resolve(schema: DocumentSchema, { components }: SchemaHolder): DocumentSchema {
  const name = schema.$ref?.slice('#/components/schemas/'.length);
  return name === undefined ? schema : (components.schemas[name] ?? {});
}
