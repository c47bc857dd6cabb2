/** A JSON schema as it is written to a file. */
export type Schema = { [keyword: string]: unknown };

/**
 * Why a change of a schema breaks readers of the old schema, or stored events. Empty if the change
 * only adds: an optional field, another value of an enumeration, a looser bound.
 */
export function incompatibilities(before: Schema, after: Schema, path = 'data'): string[] {
  const [olds, news] = [alternativesOf(before), alternativesOf(after)];
  const [old, only] = [olds[0], news[0]];
  if (olds.length === 1 && news.length === 1 && old !== undefined && only !== undefined)
    return compareOne(old, only, path);
  const lost = olds.flatMap((each) => {
    const tries = news.map((other) => compareOne(each, other, path));
    if (tries.some((reasons) => reasons.length === 0)) return [];
    // Among shapes of one kind, the most similar one is its new version.
    const isAlike = (_: unknown, index: number) => news[index]?.['type'] === each['type'];
    const [nearest] = 'const' in each ? [] : tries.filter(isAlike).toSorted(byLength);
    return nearest ?? [`${path} no longer takes ${JSON.stringify(each['const'] ?? each['type'])}`];
  });
  const known = new Set(olds.map((each) => each['type']));
  const foreign = news.filter((each) => !known.has(each['type']));
  return [...lost, ...foreign.map((each) => `${path} may now be ${String(each['type'])}`)];
}

/**
 * Values that are allowed now and were not: a build with the old schema would take the event for
 * malformed. Fields that it does not know are no harm.
 */
export function loosenings(before: Schema, after: Schema): string[] {
  return incompatibilities(after, before).filter((reason) => !reason.endsWith(' was removed'));
}

function byLength(one: readonly string[], other: readonly string[]): number {
  return one.length - other.length;
}

function alternativesOf(schema: Schema): Schema[] {
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? (anyOf as Schema[]).flatMap(alternativesOf) : [schema];
}

function compareOne(before: Schema, after: Schema, path: string): string[] {
  if (before['type'] !== after['type'])
    return [`${path} was ${String(before['type'])} and is ${String(after['type'])}`];
  return [
    ...comparePlain(before, after, path),
    ...compareBounds(before, after, path),
    ...compareFields(before, after, path),
    ...compareNested(before, after, path),
  ];
}

/** Keywords that may be removed, but not added or changed. */
const plain = ['const', 'enum', 'pattern', 'format', 'multipleOf', 'additionalProperties'];
const lower = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const upper = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const structural = ['type', 'properties', 'required', 'items', 'patternProperties', 'anyOf'];
/** Keywords that do not restrict the data. */
const annotations = ['description', 'title', 'examples', 'default', '$id', '$schema'];
const known = new Set([...plain, ...lower, ...upper, ...structural, ...annotations]);

function comparePlain(before: Schema, after: Schema, path: string): string[] {
  const unknown = Object.keys(after).filter((keyword) => !known.has(keyword));
  return [...plain, ...unknown]
    .filter((keyword) => keyword in after && !isSame(before[keyword], after[keyword]))
    .map((keyword) => `${path}: ${keyword} is now ${JSON.stringify(after[keyword])}`);
}

function compareBounds(before: Schema, after: Schema, path: string): string[] {
  const bound = (schema: Schema, keyword: string, none: number) =>
    typeof schema[keyword] === 'number' ? schema[keyword] : none;
  const narrowed = [
    ...lower.filter((word) => bound(after, word, -Infinity) > bound(before, word, -Infinity)),
    ...upper.filter((word) => bound(after, word, Infinity) < bound(before, word, Infinity)),
  ];
  return narrowed.map((word) => `${path}: ${word} narrowed to ${JSON.stringify(after[word])}`);
}

function compareFields(before: Schema, after: Schema, path: string): string[] {
  const [olds, news] = [fieldsOf(before, 'properties'), fieldsOf(after, 'properties')];
  const [always, must] = [requiredOf(before), requiredOf(after)];
  const reasons = Object.entries(olds).flatMap(([name, schema]) => {
    const now = news[name];
    const field = `${path}.${name}`;
    if (now === undefined) return [`${field} was removed`];
    const gone = always.has(name) && !must.has(name) ? [`${field} is no longer always there`] : [];
    return [...gone, ...incompatibilities(schema, now, field)];
  });
  const required = [...must].filter((name) => !always.has(name));
  return [...reasons, ...required.map((name) => `${path}.${name} is newly required`)];
}

/** Elements of a list, and values under names that match a pattern. */
function compareNested(before: Schema, after: Schema, path: string): string[] {
  const [olds, news] = [
    fieldsOf(before, 'patternProperties'),
    fieldsOf(after, 'patternProperties'),
  ];
  const named = Object.keys({ ...olds, ...news }).flatMap((pattern) => {
    const [old, now] = [olds[pattern], news[pattern]];
    if (now === undefined) return [`${path}: names like ${pattern} were removed`];
    if (old === undefined) return [`${path}: names like ${pattern} are now bound`];
    return incompatibilities(old, now, `${path}.*`);
  });
  const [old, now] = [before['items'], after['items']] as (Schema | undefined)[];
  if (now === undefined) return named;
  return [...named, ...incompatibilities(old ?? {}, now, `${path}[]`)];
}

function fieldsOf(schema: Schema, keyword: string): Record<string, Schema> {
  return (schema[keyword] ?? {}) as Record<string, Schema>;
}

function requiredOf(schema: Schema): Set<string> {
  return new Set((schema['required'] ?? []) as string[]);
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
