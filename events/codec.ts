import { Type, type TSchema } from 'typebox';
import { Compile } from 'typebox/schema';
import { Envelope, type EventMetadata } from './envelope.ts';
import { aggregates, type RecordedEvent } from './events.ts';
import {
  isId,
  parseSubject,
  subjectOf,
  type AggregateKind,
  type AggregateRef,
} from './subjects.ts';
import { dataVersion, upcast } from './upcast.ts';

/** An event to be appended: decided and folded, without a sequence. */
export type PendingEvent = {
  aggregate: AggregateRef;
  id: string;
  type: string;
  time: string;
  data: unknown;
  state: unknown;
  metadata: EventMetadata;
};

/** One message of the EVENTS stream: CloudEvents 1.0, binary mode. */
export type Message = { subject: string; headers: Record<string, string>; body: Uint8Array };

/** An event that cannot be decoded: it does not fit its schema, or has an unexpected header. */
export class MalformedEvent extends Error {
  override readonly name: string = 'MalformedEvent';
}

/**
 * A well-formed event of a type, or of a version of its type, that this build does not know: a
 * newer version of the service wrote it. No reader skips it; each waits for a newer process.
 */
export class UnknownEvent extends MalformedEvent {
  override readonly name = 'UnknownEvent';
}

type Validator = {
  Check: (value: unknown) => boolean;
  Errors: (value: unknown) => [isValid: boolean, errors: object[]];
};
/** A type of this build. `type` is one text for all events, so that look-ups by it are cheap. */
type KnownType = { type: string; version: number; dataSchema: string; data: Validator };
const knownTypes = new Map<string, KnownType>();
const stateValidators = new Map<AggregateKind, Validator>();
const envelopeValidator = validatorOf(Envelope);
const identityValidator = validatorOf(Type.Pick(Envelope, ['id', 'time']));
for (const [kind, { events, state }] of Object.entries(aggregates)) {
  stateValidators.set(kind as AggregateKind, validatorOf(state));
  for (const [type, schema] of Object.entries(events)) {
    const version = dataVersion(type);
    const dataSchema = dataSchemaOf(type, version);
    knownTypes.set(type, { type, version, dataSchema, data: validatorOf(schema) });
  }
}

/**
 * Compiled at its first use: all take 0.13 s of processor time, a session's state half of that, and
 * a call of `bss` or a process of one role sees few of them.
 */
function validatorOf(schema: TSchema): Validator {
  let compiled: Validator | null = null;
  const use = (): Validator => (compiled ??= Compile(schema));
  return { Check: (value) => use().Check(value), Errors: (value) => use().Errors(value) };
}

function dataSchemaOf(type: string, version: number): string {
  return `urn:bss:event:${type}:${version}`;
}

const text = new TextEncoder();
const SCHEMA = /^urn:bss:event:([a-z-]+\.[a-z-]+):(\d+)$/;

/**
 * Encodes an event as a message.
 * @throws MalformedEvent if data, state or envelope does not fit its schema: a bug of the code that
 * decided it
 */
export function encode(event: PendingEvent): Message {
  const { aggregate, type } = event;
  validate(envelopeValidator, event, 'envelope of ', type);
  validate(knownTypes.get(type)?.data, event.data, 'data of ', type);
  validate(stateValidators.get(aggregate.kind), event.state, 'state after ', type);
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

/** The headers of an event's message: the attributes of CloudEvents, binary mode. */
export function headersOf(
  event: Pick<PendingEvent, 'aggregate' | 'id' | 'type' | 'time' | 'metadata'>,
) {
  const { aggregate, type, metadata } = event;
  const headers: Record<string, string> = {
    'ce-specversion': '1.0',
    'ce-id': event.id,
    'ce-type': type,
    'ce-source': '/browser-session-service',
    'ce-subject': 'id' in aggregate ? aggregate.id : aggregate.organizationId,
    'ce-time': event.time,
    'ce-dataschema': dataSchemaOf(type, dataVersion(type)),
    'ce-actor': `${metadata.actor.kind}:${encodeURIComponent(metadata.actor.id)}`,
    'ce-commandid': metadata.commandId,
    'ce-correlationid': metadata.correlationId,
    'content-type': 'application/json',
  };
  const { via, client } = metadata.actor;
  if (via !== undefined) headers['ce-via'] = via;
  if (client !== undefined) headers['ce-client'] = encodeURIComponent(client);
  if (metadata.causationId !== null) headers['ce-causationid'] = metadata.causationId;
  if (metadata.traceparent !== undefined) headers['traceparent'] = metadata.traceparent;
  return headers;
}

/** The headers that `decode` reads. */
export const headersRead = [
  'ce-dataschema',
  'ce-id',
  'ce-time',
  'ce-actor',
  'ce-via',
  'ce-client',
  'ce-commandid',
  'ce-correlationid',
  'ce-causationid',
  'traceparent',
] as const;

/**
 * Decodes a message of the EVENTS stream and upcasts retired shapes. `state` is null if the event
 * was written with another state version: the reader folds the history instead.
 * @throws MalformedEvent; UnknownEvent if a newer version of the service wrote it
 */
export function decode(
  subject: string,
  header: (name: string) => string,
  body: string,
  sequence: number,
): RecordedEvent {
  const { aggregate, known, version } = identify({ subject, header, body });
  const { type } = known;
  const { data, state, stateVersion } = parseBody(subject, body);
  const current = lift(type, version, data);
  const isKnown = stateVersion === aggregates[aggregate.kind].stateVersion;
  const event = {
    aggregate,
    type,
    id: header('ce-id'),
    time: header('ce-time'),
    metadata: readMetadata(header),
    sequence,
    data: current,
    state: isKnown ? state : null,
  };
  validate(known.data, current, 'data of ', type);
  if (isKnown) validate(stateValidators.get(aggregate.kind), state, 'state in ', subject);
  validate(envelopeValidator, event, 'envelope of ', subject);
  return event as RecordedEvent;
}

type Undecoded = { subject: string; header: (name: string) => string; body: string };

/**
 * The event's aggregate, its type, and the version of its data.
 * @throws MalformedEvent; UnknownEvent if a newer version of the service wrote it
 */
function identify(message: Undecoded) {
  const { subject, header } = message;
  const parsed = parseSubject(subject);
  const dataSchema = header('ce-dataschema');
  const known = parsed === null ? undefined : knownTypes.get(parsed.type);
  if (parsed !== null && known !== undefined && known.dataSchema === dataSchema)
    return { aggregate: parsed.aggregate, known, version: known.version };
  const schema = SCHEMA.exec(dataSchema);
  if (parsed === null && schema !== null && isOfOtherKind(subject, schema[1] ?? ''))
    throw unknownEvent(message, 'no such kind of aggregate');
  if (parsed === null) throw new MalformedEvent(`${subject} is not an event subject`);
  if (schema === null || schema[1] !== parsed.type)
    throw new MalformedEvent(`${subject}: ce-dataschema ${dataSchema}`);
  if (known === undefined) throw unknownEvent(message, 'no such type');
  const version = Number(schema[2]);
  if (version > known.version) throw unknownEvent(message, `no such version: ${schema[2]}`);
  return { aggregate: parsed.aggregate, known, version };
}

/** Whether the subject fits the type, whose kind of aggregate this build does not know. */
function isOfOtherKind(subject: string, type: string): boolean {
  const [kind = '', event] = type.split('.');
  const tokens = subject.split('.');
  const at = tokens[0] === 'evt' ? 2 : 1;
  const isShaped = tokens.every(isId) && (tokens.length === at + 2 || tokens.length === at + 3);
  const isRooted = tokens[0] === 'evt' || tokens[0] === 'fleet';
  const isKnown = Object.hasOwn(aggregates, kind);
  return isShaped && isRooted && !isKnown && tokens[at] === kind && tokens.at(-1) === event;
}

/**
 * What later versions may change is not looked at: data, state, and who may be an actor.
 * @throws MalformedEvent if not even the rest is well-formed
 */
function unknownEvent({ subject, header, body }: Undecoded, why: string): UnknownEvent {
  parseBody(subject, body);
  const identity = { id: header('ce-id'), time: header('ce-time') };
  validate(identityValidator, identity, 'envelope of ', subject);
  return new UnknownEvent(`${subject}: ${why}; a newer version of the service wrote it`);
}

function parseBody(subject: string, body: string) {
  const parsed = parseJson(subject, body);
  if (typeof parsed !== 'object' || parsed === null)
    throw new MalformedEvent(`${subject}: the body is not an object`);
  return parsed as { data: unknown; state: unknown; stateVersion: unknown };
}

function parseJson(subject: string, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new MalformedEvent(`${subject}: the body is not JSON`);
  }
}

function lift(type: string, version: number, data: unknown): unknown {
  try {
    return upcast(type, version, data);
  } catch (error) {
    throw new MalformedEvent(String(error));
  }
}

function readMetadata(header: (name: string) => string): EventMetadata {
  const metadata: EventMetadata = {
    actor: readActor(header),
    commandId: header('ce-commandid'),
    correlationId: header('ce-correlationid'),
    causationId: header('ce-causationid') || null,
  };
  const traceparent = header('traceparent');
  if (traceparent !== '') metadata.traceparent = traceparent;
  return metadata;
}

function readActor(header: (name: string) => string): EventMetadata['actor'] {
  const [kind = '', id = ''] = header('ce-actor').split(':');
  if (kind !== 'user' && kind !== 'operator' && kind !== 'service')
    throw new MalformedEvent(`ce-actor ${kind}`);
  const actor: EventMetadata['actor'] = { kind, id: uriDecoded(id, 'ce-actor') };
  const via = header('ce-via');
  if (via !== '') actor.via = via;
  const client = header('ce-client');
  if (client !== '') actor.client = uriDecoded(client, 'ce-client');
  return actor;
}

function uriDecoded(text: string, name: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    throw new MalformedEvent(`${name} is not URI-encoded`);
  }
}

/** @throws MalformedEvent; the message is put together only then: this runs for each event */
function validate(
  validator: Validator | undefined,
  value: unknown,
  what: string,
  of: string,
): void {
  if (validator === undefined) throw new MalformedEvent(`${what}${of}: no schema`);
  if (validator.Check(value)) return;
  const [, errors] = validator.Errors(value);
  throw new MalformedEvent(`${what}${of}: ${JSON.stringify(errors).slice(0, 500)}`);
}
