import { toCloudEvent, type CloudEvent } from './cloud-event.ts';
import { headersOf, type Message } from './codec.ts';
import { aggregates, type RecordedEvent } from './events.ts';
import { isFleetKind, liveSubjectOf, publicSubjectOf, type AggregateKind } from './subjects.ts';

/**
 * Parts of data and state that are internal to the service, by their path (`*`: each element of a
 * list): addresses of browsers, hashes of keys and of requests, and ids that open something, as the
 * one of an MCP session. They are stored, and removed from everything that organizations get.
 */
const inside = {
  session: [
    'workload.serverIp',
    'workload.cdp',
    'workload.vnc',
    'workload.webdriver',
    'owner',
    'fingerprint',
    'repeatable',
    'keyedExtensions',
    'egress.proxy.sealedPassword',
  ],
  ledger: [],
  organization: ['hash', 'keys.*.hash', 'endpoint', 'webhooks.*.endpoint'],
  profile: [],
  server: [],
  workload: [],
  archive: [],
} as const satisfies Record<AggregateKind, readonly string[]>;

type LastOf<Path> = Path extends `${string}.${infer Rest}` ? LastOf<Rest> : Path;
type Inside = LastOf<(typeof inside)[AggregateKind][number]>;

/** Types of events that only keep the log readable for the service. */
export type Internal = `${AggregateKind}.carried-forward`;

/** Whether organizations get events of the type: none of the fleet, and none that is internal. */
export function isPublic(type: string): boolean {
  const [kind = '', event] = type.split('.');
  return !isFleetKind(kind) && event !== 'carried-forward';
}

/** A type of data or state without its internal parts. */
export type Public<Value> = Value extends readonly (infer Item)[]
  ? Public<Item>[]
  : Value extends object
    ? { [Field in keyof Value as Field extends Inside ? never : Field]: Public<Value[Field]> }
    : Value;

/** A JSON schema of data or state. */
type Schema = { [keyword: string]: unknown };

const pathsOf = Object.fromEntries(
  Object.entries(inside).map(([kind, paths]) => [kind, paths.map((path) => path.split('.'))]),
) as Record<AggregateKind, string[][]>;

/** An event as an organization gets it over HTTP. */
export function toPublicEvent(event: RecordedEvent): CloudEvent {
  const all = toCloudEvent(event);
  const { kind } = event.aggregate;
  return { ...all, data: publicValue(kind, all.data), state: publicValue(kind, all.state) };
}

/** The header with the number of an event among those of its organization: 1, 2, 3 … */
export const ORGANIZATION_SEQUENCE = 'ce-orgsequence';
/** The header with the event's sequence in the event store, by which the publisher goes on. */
export const STORE_SEQUENCE = 'ce-sequence';

/**
 * An event as it is stored in PUBLIC for its organization: CloudEvents 1.0, binary mode.
 * @param orgSequence the event's number among those of its organization
 * @throws RangeError for an event that organizations do not get
 */
export function toPublicMessage(event: RecordedEvent, orgSequence: number): Message {
  const { aggregate, type, sequence } = event;
  if (!isPublic(type)) throw new RangeError(`${type} is not for organizations`);
  return {
    subject: publicSubjectOf(aggregate, type),
    headers: {
      ...headersOf(event),
      [STORE_SEQUENCE]: String(sequence),
      [ORGANIZATION_SEQUENCE]: String(orgSequence),
    },
    body: new TextEncoder().encode(publicBodyOf(event)),
  };
}

/** The body of an event's message as organizations get it. */
export function publicBodyOf({ aggregate: { kind }, data, state }: RecordedEvent): string {
  return JSON.stringify({
    data: publicValue(kind, data),
    state: publicValue(kind, state),
    stateVersion: aggregates[kind].stateVersion,
  });
}

/** An event as operators get it: whole, but for webhooks' URLs, which may hold credentials. */
export function toOperatorEvent(event: RecordedEvent): CloudEvent {
  const all = toCloudEvent(event);
  if (event.aggregate.kind !== 'organization') return all;
  const paths = ['endpoint', 'webhooks.*.endpoint'].map((path) => path.split('.'));
  return { ...all, data: paths.reduce(without, all.data), state: paths.reduce(without, all.state) };
}

/**
 * A message of PUBLIC as organizations hear it live. It has no number but the organization's own:
 * any other one grows with what all organizations do.
 */
export function toLiveMessage({ subject, headers, body }: Message): Message {
  const { [STORE_SEQUENCE]: _, ...own } = headers;
  return { subject: liveSubjectOf(subject), headers: own, body };
}

/** Data or state of an event without its internal parts. */
export function publicValue(kind: AggregateKind, value: unknown): unknown {
  return pathsOf[kind].reduce(without, value);
}

/** The schema of the values that `publicValue` returns. */
export function publicSchema(kind: AggregateKind, schema: Schema): Schema {
  return pathsOf[kind].reduce(schemaWithout, schema);
}

function without(value: unknown, [field, ...rest]: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || field === undefined) return value;
  if (Array.isArray(value)) return field === '*' ? value.map((one) => without(one, rest)) : value;
  if (!Object.hasOwn(value, field)) return value;
  const { [field]: found, ...others } = value as Record<string, unknown>;
  return rest.length === 0 ? others : { ...value, [field]: without(found, rest) };
}

function schemaWithout(schema: Schema, path: readonly string[]): Schema {
  const [field, ...rest] = path;
  const { anyOf, items, properties, required } = schema;
  if (Array.isArray(anyOf))
    return { ...schema, anyOf: anyOf.map((one: Schema) => schemaWithout(one, path)) };
  if (field === '*' && isSchema(items)) return { ...schema, items: schemaWithout(items, rest) };
  if (field === undefined || !isSchema(properties)) return schema;
  const { [field]: found, ...others } = properties;
  if (!isSchema(found)) return schema;
  if (rest.length > 0)
    return { ...schema, properties: { ...properties, [field]: schemaWithout(found, rest) } };
  const stay = Array.isArray(required) ? required.filter((name) => name !== field) : [];
  return { ...schema, properties: others, ...(required === undefined ? {} : { required: stay }) };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null;
}
