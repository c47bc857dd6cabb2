import { Compile } from 'typebox/compile';
import { Envelope, type Cause } from './envelope.ts';
import { aggregates, type RecordedEvent } from './events.ts';
import { parseSubject, subjectOf, type AggregateKind, type AggregateRef } from './subjects.ts';
import { dataVersion, upcast } from './upcast.ts';

/** An event on its way into the log: decided, folded, not yet given a sequence. */
export type Unsequenced = {
  aggregate: AggregateRef;
  id: string;
  type: string;
  time: string;
  data: unknown;
  state: unknown;
  cause: Cause;
};

/** One message of the EVENTS stream: CloudEvents 1.0, binary mode. */
export type Message = { subject: string; headers: Record<string, string>; body: Uint8Array };

/** An event that does not fit its schema, is of no known type, or has a foreign header. */
export class MalformedEvent extends Error {
  override readonly name = 'MalformedEvent';
}

/** `aggregate.state` of another version than today's: the history has to be folded. */
export const STATE_UNKNOWN = Symbol('state of another version');

type Validator = { Check: (value: unknown) => boolean; Errors: (value: unknown) => object };
const dataValidators = new Map<string, Validator>();
const stateValidators = new Map<AggregateKind, Validator>();
const envelopeValidator: Validator = Compile(Envelope);
for (const [kind, { events, state }] of Object.entries(aggregates)) {
  stateValidators.set(kind as AggregateKind, Compile(state));
  for (const [type, schema] of Object.entries(events)) dataValidators.set(type, Compile(schema));
}

const text = new TextEncoder();
const SCHEMA = /^urn:bss:event:([a-z-]+\.[a-z-]+):(\d+)$/;

/**
 * @throws MalformedEvent where data, state or envelope does not fit its schema: a bug of the one
 * who decided
 */
export function encode(event: Unsequenced): Message {
  const { aggregate, type } = event;
  validate(envelopeValidator, event, `envelope of ${type}`);
  validate(dataValidators.get(type), event.data, `data of ${type}`);
  validate(stateValidators.get(aggregate.kind), event.state, `state after ${type}`);
  const body = JSON.stringify({
    data: event.data,
    state: event.state,
    stateVersion: aggregates[aggregate.kind].stateVersion,
  });
  return {
    subject: subjectOf(aggregate, type),
    headers: headersOf(event),
    body: text.encode(body),
  };
}

/** What stands beside an event's body: the attributes of CloudEvents, binary mode. */
export function headersOf(
  event: Pick<Unsequenced, 'aggregate' | 'id' | 'type' | 'time' | 'cause'>,
) {
  const { aggregate, type, cause } = event;
  const headers: Record<string, string> = {
    'ce-specversion': '1.0',
    'ce-id': event.id,
    'ce-type': type,
    'ce-source': '/browser-session-service',
    'ce-subject': 'id' in aggregate ? aggregate.id : aggregate.organizationId,
    'ce-time': event.time,
    'ce-dataschema': `urn:bss:event:${type}:${dataVersion(type)}`,
    'ce-actor': `${cause.actor.kind}:${encodeURIComponent(cause.actor.id)}`,
    'ce-commandid': cause.commandId,
    'ce-correlationid': cause.correlationId,
    'content-type': 'application/json',
  };
  if (cause.causationId !== null) headers['ce-causationid'] = cause.causationId;
  if (cause.traceparent !== undefined) headers['traceparent'] = cause.traceparent;
  return headers;
}

/**
 * Reads a message of the EVENTS stream, lifting retired shapes. Where the state is of another
 * version than today's, `state` is STATE_UNKNOWN and the reader folds the history.
 * @throws MalformedEvent
 */
export function decode(
  subject: string,
  header: (name: string) => string,
  body: string,
  sequence: number,
): RecordedEvent {
  const parsed = parseSubject(subject);
  if (parsed === null) throw new MalformedEvent(`${subject} is no subject of an event`);
  const schema = SCHEMA.exec(header('ce-dataschema'));
  if (schema === null || schema[1] !== parsed.type)
    throw new MalformedEvent(`${subject}: ce-dataschema ${header('ce-dataschema')}`);
  const { data, state, stateVersion } = parseBody(subject, body);
  const current = lift(parsed.type, Number(schema[2]), data);
  validate(dataValidators.get(parsed.type), current, `data of ${parsed.type}`);
  const isKnown = stateVersion === aggregates[parsed.aggregate.kind].stateVersion;
  if (isKnown) validate(stateValidators.get(parsed.aggregate.kind), state, `state in ${subject}`);
  const envelope = { id: header('ce-id'), time: header('ce-time'), cause: readCause(header) };
  validate(envelopeValidator, envelope, `envelope of ${subject}`);
  return {
    aggregate: parsed.aggregate,
    type: parsed.type,
    ...envelope,
    sequence,
    data: current,
    state: isKnown ? state : STATE_UNKNOWN,
  } as RecordedEvent;
}

function parseBody(subject: string, body: string) {
  const parsed = parseJson(subject, body);
  if (typeof parsed !== 'object' || parsed === null)
    throw new MalformedEvent(`${subject}: the body is no object`);
  return parsed as { data: unknown; state: unknown; stateVersion: unknown };
}

function parseJson(subject: string, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new MalformedEvent(`${subject}: the body is no JSON`);
  }
}

function lift(type: string, version: number, data: unknown): unknown {
  try {
    return upcast(type, version, data);
  } catch (error) {
    throw new MalformedEvent(String(error));
  }
}

function readCause(header: (name: string) => string): Cause {
  const traceparent = header('traceparent');
  return {
    actor: readActor(header('ce-actor')),
    commandId: header('ce-commandid'),
    correlationId: header('ce-correlationid'),
    causationId: header('ce-causationid') || null,
    ...(traceparent === '' ? {} : { traceparent }),
  };
}

function readActor(text: string): Cause['actor'] {
  const [kind = '', id = ''] = text.split(':');
  if (kind !== 'user' && kind !== 'operator' && kind !== 'service')
    throw new MalformedEvent(`ce-actor ${kind}`);
  try {
    return { kind, id: decodeURIComponent(id) };
  } catch {
    throw new MalformedEvent(`ce-actor ${kind}: its id cannot be read`);
  }
}

function validate(validator: Validator | undefined, value: unknown, what: string): void {
  if (validator === undefined) throw new MalformedEvent(`${what}: no schema`);
  if (!validator.Check(value))
    throw new MalformedEvent(`${what}: ${JSON.stringify(validator.Errors(value)).slice(0, 500)}`);
}
