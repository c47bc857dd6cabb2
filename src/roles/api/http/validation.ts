import type { FastifyError, FastifyRequest, FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { CHECKED_BY_HANDLER } from '../schemas/fields.ts';

/**
 * Validates requests, and is the one place that turns the validator's errors into rejections.
 * TypeBox's compiler checks what Fastify passes to it. The compiler of
 * @fastify/type-provider-typebox is not used because it converts queries with `Value.Convert`,
 * which reads `limit=` as 0, `limit=true` as 1 and `limit=1.7` as 1: those are refused here.
 */

/** The validator's report of one flaw. */
export type Flaw = {
  keyword: string;
  instancePath: string;
  message: string;
  schemaPath: string;
  params: { additionalProperties?: string[]; propertyNames?: string[] };
};

/**
 * The specific rejection of a query parameter or header, made from the value that the client sent.
 */
export type Refusal = (sent: unknown, flaw: Flaw) => Rejection;
type ParameterSchema = { type?: string; refusal?: Refusal };

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const properties = propertiesOf(schema);
  const validator = Compile(looseOf(schema));
  return (sent: unknown) => {
    const value = readPart(httpPart, properties, sent);
    if (!validator.Check(value)) return { error: validator.Errors(value) };
    // Fastify passes all headers, under Node's names.
    return httpPart === 'headers' ? true : { value };
  };
};

/**
 * The schema without the parts that handlers check, and without formats: formats are documentation,
 * and the pattern beside each decides.
 */
function looseOf(schema: TSchema): TSchema {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    // A property may have the name, too.
    if (key === 'format' && typeof value === 'string') return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (CHECKED_BY_HANDLER in value) return {};
    if (!('properties' in value && 'required' in value)) return value;
    const properties = value.properties as Record<string, object>;
    const required = value.required as string[];
    const isChecked = (name: string) => !(CHECKED_BY_HANDLER in (properties[name] ?? {}));
    return { ...value, required: required.filter(isChecked) };
  });
  return JSON.parse(text) as TSchema;
}

function readPart(
  httpPart: string | undefined,
  properties: Record<string, ParameterSchema>,
  sent: unknown,
): unknown {
  if (httpPart === 'querystring') return readQuery(properties, sent as Record<string, unknown>);
  if (httpPart !== 'headers') return sent;
  const headers = sent as Record<string, unknown>;
  const named = Object.keys(properties).map((name) => [name, headers[name.toLowerCase()]] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined));
}

/**
 * Where the schema has an integer, digits become one; where it has a list, one value becomes a
 * list.
 */
function readQuery(properties: Record<string, ParameterSchema>, sent: Record<string, unknown>) {
  const entries = Object.entries(sent);
  if (entries.length === 0) return {};
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const { type } = properties[name] ?? {};
      if (typeof value !== 'string') return [name, value];
      if (type === 'array') return [name, [value]];
      if (type !== 'integer' || !/^\d{1,16}$/.test(value)) return [name, value];
      return [name, Number.isSafeInteger(Number(value)) ? Number(value) : value];
    }),
  );
}

/** The rejection of a request that does not fit its route's schema; null for other errors. */
export function validationRejection(
  error: FastifyError,
  { query, headers, routeOptions }: FastifyRequest,
): Rejection | null {
  if (error.validation === undefined) return null;
  const flaws = error.validation as unknown as Flaw[];
  const parameters = propertiesOf(routeOptions.schema?.querystring);
  const unknown = rejectUnknown(parameters, query as object);
  if (unknown !== null) return unknown;
  switch (error.validationContext) {
    case 'querystring':
      return rejectParameter(parameters, query as object, flaws);
    case 'headers': {
      const named = propertiesOf(routeOptions.schema?.headers);
      return rejectParameter(named, readPart('headers', named, headers) as object, flaws);
    }
    default:
      return rejectBody(flaws);
  }
}

function propertiesOf(schema: unknown): Record<string, ParameterSchema> {
  return (schema as { properties?: Record<string, ParameterSchema> } | undefined)?.properties ?? {};
}

/** The first flaw, and all unknown fields. */
function rejectBody(flaws: readonly Flaw[]): Rejection {
  const [first] = flaws;
  const field = first?.instancePath.slice(1).replaceAll('/', '.') || 'body';
  const isUnknown = first?.keyword === 'boolean' || first?.schemaPath.endsWith('/propertyNames');
  if (!isUnknown) return invalid({ field }, `${field}: ${first?.message ?? 'is not valid'}.`);
  const named = flaws.map(({ params }) => params.additionalProperties ?? params.propertyNames);
  const unknown = named.find((names) => names !== undefined) ?? [field];
  return invalid({ field, unknown }, `${field}: is not a known field.`);
}

/** Comes before any other flaw: a misspelt filter must not count as no filter. */
function rejectUnknown(properties: Record<string, ParameterSchema>, sent: object) {
  const known = Object.keys(properties);
  const unknown = Object.keys(sent).filter((name) => !Object.hasOwn(properties, name));
  if (unknown.length === 0) return null;
  return invalid({ unknown, known }, 'A query parameter is not known.');
}

/** In the order of the schema, whatever the order in the request. */
function rejectParameter(
  properties: Record<string, ParameterSchema>,
  sent: object,
  flaws: readonly Flaw[],
): Rejection {
  for (const [name, { refusal }] of Object.entries(properties)) {
    const flaw = flaws.find(({ instancePath }) => instancePath.split('/')[1] === name);
    if (flaw === undefined) continue;
    const value = (sent as Record<string, unknown>)[name];
    return refusal?.(value, flaw) ?? invalid({ [name]: value }, `${name} ${flaw.message}.`);
  }
  return reject('INVALID_REQUEST');
}

/** In a list the item with the flaw, else the value itself. */
export function itemOf(sent: unknown, { instancePath }: Flaw): unknown {
  const at = instancePath.split('/')[2];
  return at === undefined ? sent : [sent].flat()[Number(at)];
}

/** INVALID_REQUEST with a description of the flaw. */
export function invalid(context: Record<string, unknown>, message: string): Rejection {
  return reject('INVALID_REQUEST', context, { message });
}
