import type { Schema } from './schema-compatibility.ts';

/** One change somewhere in a schema: its description, and the whole schema after it. */
export type Mutation = { what: string; after: Schema };

type Change = { what: string; node: Schema | null };
type Rule = (node: Schema, isAlternative: boolean) => Change[];

/** Every incompatible change of each part of a schema, for old data or for readers. */
export function* breaking(schema: Schema): Generator<Mutation> {
  yield* mutations(schema, [
    otherType,
    nowNull,
    narrower,
    renamed,
    fewerWords,
    moreRequired,
    noLongerNull,
  ]);
}

/** Every compatible change of each part. */
export function* adding(schema: Schema): Generator<Mutation> {
  yield* mutations(schema, [looser, described, optionalField]);
}

function* mutations(schema: Schema, rules: readonly Rule[], path = 'data'): Generator<Mutation> {
  for (const rule of rules)
    for (const { what, node } of rule(schema, path.includes('|', path.lastIndexOf('.'))))
      if (node !== null) yield { what: `${path}: ${what}`, after: node };
  const { properties, items, anyOf, patternProperties } = schema as Parts;
  for (const [name, part] of Object.entries(properties ?? {}))
    for (const { what, after } of mutations(part, rules, `${path}.${name}`))
      yield { what, after: { ...schema, properties: { ...properties, [name]: after } } };
  for (const [pattern, part] of Object.entries(patternProperties ?? {}))
    for (const { what, after } of mutations(part, rules, `${path}.*`))
      yield { what, after: { ...schema, patternProperties: { [pattern]: after } } };
  if (items !== undefined)
    for (const { what, after } of mutations(items, rules, `${path}[]`))
      yield { what, after: { ...schema, items: after } };
  for (const [at, part] of (anyOf ?? []).entries())
    for (const { what, after } of mutations(part, rules, `${path}|${at}`))
      yield { what, after: { ...schema, anyOf: anyOf?.with(at, after) } };
}

type Parts = {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  required?: string[];
};

const OTHER: Record<string, string> = {
  string: 'integer',
  integer: 'string',
  number: 'string',
  boolean: 'string',
  object: 'array',
  array: 'object',
  null: 'boolean',
};

function otherType(node: Schema): Change[] {
  const { type } = node;
  if (typeof type !== 'string' || 'const' in node) return [];
  const wider =
    type === 'integer' ? [{ what: 'any number', node: { ...node, type: 'number' } }] : [];
  const other = { type: OTHER[type] ?? 'string' };
  return [
    ...wider,
    { what: `${other.type} for ${type}`, node: other },
    { what: 'anything at all', node: {} },
  ];
}

/** Except for one of several alternatives, of which another may be null already. */
function nowNull(node: Schema, isAlternative: boolean): Change[] {
  const { anyOf = [] } = node as Parts;
  const isNullable = [node, ...anyOf].some(({ type }) => type === 'null');
  if (isNullable || isAlternative) return [];
  return [{ what: 'may be null', node: { anyOf: [node, { type: 'null' }] } }];
}

function narrower(node: Schema): Change[] {
  if ('const' in node) return [];
  const more = (key: string) => (typeof node[key] === 'number' ? node[key] + 1 : 1);
  const less = (key: string) => (typeof node[key] === 'number' ? node[key] - 1 : 7);
  const bounds: Record<string, string[][]> = {
    string: [['minLength', 'maxLength']],
    integer: [['minimum', 'maximum']],
    array: [['minItems', 'maxItems']],
  };
  const [[low, high] = []] = bounds[String(node['type'])] ?? [];
  if (low === undefined || high === undefined) return [];
  const pattern = { ...node, pattern: '^never$' };
  return [
    { what: `a higher ${low}`, node: { ...node, [low]: more(low) } },
    { what: `a lower ${high}`, node: { ...node, [high]: less(high) } },
    { what: 'another pattern', node: node['type'] === 'string' ? pattern : null },
  ];
}

function renamed(node: Schema): Change[] {
  const { properties, required = [] } = node as Parts;
  return Object.entries(properties ?? {}).flatMap(([name, part]) => {
    const { [name]: _, ...rest } = properties ?? {};
    const kept = required.filter((one) => one !== name);
    const removed = { ...node, properties: rest, required: kept };
    const moved = { ...removed, properties: { ...rest, [`${name}New`]: part } };
    return [
      { what: `${name} removed`, node: removed },
      { what: `${name} renamed`, node: moved },
      {
        what: `${name} no longer always there`,
        node: required.includes(name) ? { ...node, required: kept } : null,
      },
    ];
  });
}

function moreRequired(node: Schema): Change[] {
  const { properties, required = [] } = node as Parts;
  if (node['type'] !== 'object' || properties === undefined) return [];
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  return [
    {
      what: 'a new field that must be there',
      node: {
        ...node,
        properties: { ...properties, fresh: { type: 'string' } },
        required: [...required, 'fresh'],
      },
    },
    { what: 'closed to fields that are not known', node: { ...node, additionalProperties: false } },
    ...optional.map((name) => ({
      what: `${name} must be there now`,
      node: { ...node, required: [...required, name] },
    })),
  ];
}

function fewerWords(node: Schema): Change[] {
  const { anyOf = [] } = node as Parts;
  if ('const' in node) return [{ what: 'another word', node: { ...node, const: 'another' } }];
  if (anyOf.length < 2) return [];
  return anyOf.map((_, at) => ({
    what: `without its alternative ${at}`,
    node: { ...node, anyOf: anyOf.toSpliced(at, 1) },
  }));
}

function noLongerNull(node: Schema): Change[] {
  const { anyOf = [] } = node as Parts;
  const rest = anyOf.filter(({ type }) => type !== 'null');
  return rest.length === 1 && rest[0] !== undefined && anyOf.length === 2
    ? [{ what: 'no null any more', node: rest[0] }]
    : [];
}

function looser(node: Schema): Change[] {
  const bounds = [
    'pattern',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'minItems',
    'maxItems',
  ];
  return bounds
    .filter((bound) => bound in node)
    .map((bound) => {
      const { [bound]: _, ...rest } = node;
      return { what: `without ${bound}`, node: rest };
    });
}

function described(node: Schema): Change[] {
  return [{ what: 'described', node: { ...node, description: 'said otherwise' } }];
}

function optionalField(node: Schema): Change[] {
  const { properties } = node as Parts;
  if (properties === undefined) return [];
  const fresh = { type: 'string', maxLength: 5 };
  return [
    { what: 'a field that need not be', node: { ...node, properties: { ...properties, fresh } } },
  ];
}
