import type { TSchema } from 'typebox';

/** A JSON schema of the document, 2020-12; `$ref` points into its components. */
export type DocumentSchema = {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  required?: string[];
  properties?: Record<string, DocumentSchema>;
  additionalProperties?: boolean | DocumentSchema;
  patternProperties?: Record<string, DocumentSchema>;
  items?: DocumentSchema;
  anyOf?: DocumentSchema[];
  allOf?: DocumentSchema[];
  [keyword: string]: unknown;
};

/** A schema of ours as it may look inside; TypeBox types say less about it. */
type Source = DocumentSchema & { documentedAs?: Source };

/** What a record of any keys is for TypeBox. */
const ANY_KEY = '^.*$';

/**
 * Turns our schemas into those of the document. A schema with a title becomes a component of that
 * name, once, and a `$ref` wherever it is used. `documentedAs` stands for its owner.
 */
export function createSchemaWriter() {
  const components: Record<string, DocumentSchema> = {};

  function write(schema: TSchema): DocumentSchema {
    return writeSource(schema as Source);
  }

  function writeSource(source: Source): DocumentSchema {
    if (source.documentedAs !== undefined) return writeSource(source.documentedAs);
    const { title } = source;
    if (title === undefined) return convert(source);
    // Entered before it is converted, so that a schema may use itself.
    if (components[title] === undefined) {
      const component: DocumentSchema = (components[title] = {});
      Object.assign(component, convert(source));
    }
    return { $ref: `#/components/schemas/${title}` };
  }

  function convert({ properties, patternProperties, items, anyOf, ...rest }: Source) {
    const keys = Object.entries(patternProperties ?? {});
    const values = keys.length === 1 && keys[0]?.[0] === ANY_KEY ? keys[0][1] : null;
    return {
      ...rest,
      ...(properties && { properties: mapValues(properties, writeSource) }),
      ...(items && { items: writeSource(items) }),
      ...(anyOf && convertUnion(anyOf, rest)),
      ...(values && { additionalProperties: writeSource(values) }),
      ...(patternProperties && !values
        ? { patternProperties: mapValues(patternProperties, writeSource) }
        : {}),
    };
  }

  /**
   * Words are an enumeration; something or null is a type with null, but for objects: generated
   * clients take a type of object or null for an object always.
   */
  function convertUnion(anyOf: Source[], outer: Source): DocumentSchema {
    const members = anyOf.map(writeSource);
    if (members.every((member) => typeof member.const === 'string'))
      return { type: 'string', enum: members.map((member) => member.const) };
    const [first, second] = members;
    const isNullable = second?.type === 'null' && members.length === 2;
    if (!isNullable || typeof first?.type !== 'string' || first.type === 'object')
      return { anyOf: members };
    return { ...first, ...outer, type: [first.type, 'null'] };
  }

  return { write, components };
}

/** True where a value without any property does not fit. */
export function hasRequired(schema: TSchema): boolean {
  const { documentedAs, required = [] } = schema as Source;
  return documentedAs === undefined ? required.length > 0 : hasRequired(documentedAs);
}

/**
 * An example that fits the schema: its own, or one made of its parts' examples. A property whose
 * `examples` are empty is left out of it.
 */
export function exampleOf(schema: TSchema): unknown {
  return exampleOfSource(schema as Source);
}

function exampleOfSource(source: Source): unknown {
  if (source.documentedAs !== undefined) return exampleOfSource(source.documentedAs);
  if (source.examples !== undefined) return source.examples[0];
  if ('const' in source) return source.const;
  if ('default' in source) return source.default;
  if (source.anyOf?.[0] !== undefined) return exampleOfSource(source.anyOf[0]);
  if (source.properties !== undefined) return examplesOf(source.properties);
  if (source.items !== undefined) return [exampleOfSource(source.items)];
  return source.type === 'object' ? {} : 'string';
}

function examplesOf(properties: Record<string, Source>): Record<string, unknown> {
  const shown = Object.entries(properties).filter(([, { examples }]) => examples?.length !== 0);
  return mapValues(Object.fromEntries(shown), exampleOfSource);
}

function mapValues<In, Out>(record: Record<string, In>, map: (value: In) => Out) {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
