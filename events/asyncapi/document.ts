import type { TSchema } from 'typebox';
import { addressed, operated, servers, type Addressed } from './channels.ts';
import { CloudEvent } from '../cloud-event.ts';
import { decode } from '../codec.ts';
import { aggregates, type RecordedEvent } from '../events.ts';
import { meanings } from '../meanings.ts';
import {
  isPublic,
  publicSchema,
  toLiveMessage,
  toPublicEvent,
  toPublicMessage,
} from '../public-event.ts';
import { isFleetKind, type AggregateKind } from '../subjects.ts';
import { dataVersion } from '../upcast.ts';

/** A JSON schema, with the parts that the document and its readers use. */
export type DocumentSchema = { [keyword: string]: unknown };

/** A message of the event store as its golden file has it. */
export type ExampleMessage = {
  subject: string;
  headers: Record<string, string>;
  body: object;
};

export type DocumentMessage = {
  name: string;
  title: string;
  summary: string;
  contentType: string;
  tags: { name: string }[];
  /** The part of the service that records it. */
  'x-emitted-by': string;
  headers?: DocumentSchema;
  payload: DocumentSchema;
  examples: { name: string; headers?: object; payload: object }[];
};

/** An AsyncAPI 3 document, with the parts that this one uses. */
export type AsyncApiDocument = {
  asyncapi: string;
  info: {
    title: string;
    version: string;
    description: string;
    license: { name: string };
    tags: { name: string; description: string }[];
  };
  defaultContentType: string;
  servers: object;
  channels: Record<string, object>;
  operations: Record<string, object>;
  components: {
    schemas: Record<string, DocumentSchema>;
    messages: Record<string, DocumentMessage>;
    securitySchemes: Record<string, object>;
  };
};

/** The kinds of aggregates, in the order of the documentation. */
const about: Record<AggregateKind, string> = {
  session: 'A browser session, from its request to its end.',
  ledger: 'An organization’s slots and credits; each event except a grant names its session.',
  organization: 'An organization, its tier and its API keys.',
  profile: 'A browser’s profile that is kept between sessions, with its saved versions.',
  server: 'A machine that runs browsers. For operators: organizations do not receive its events.',
  workload: 'One browser, used once. For operators: organizations do not receive its events.',
  archive: 'The archive of old events, as far as it is sealed. For operators alone.',
};
const kinds = Object.keys(about) as AggregateKind[];

const ABOUT = [
  'Every fact about a session — who, when, why it ended, what it cost — is an event in an ' +
    'append-only log. Programs receive it without polling: as Server-Sent Events over HTTP, or ' +
    'by NATS.',
  'An event is a CloudEvent 1.0. In addition to the standard attributes it has its `sequence` ' +
    'in the event store, the actor that caused it (`actor`; `via` and `client` if its request ' +
    'came through another door than the REST API) and the cause (`correlationid`, ' +
    '`causationid`). `data` is the change, `state` the state after it. No event has a password, ' +
    'a ticket or a key; events for organizations have no internal addresses of browsers.',
  'Over HTTP an event is in structured mode: one JSON object. By NATS it is in binary mode: the ' +
    'attributes as headers `ce-…`, `data` and `state` as the body.',
  'Schemas change only by additions: clients must ignore unknown fields.',
].join('\n\n');

/**
 * The document of all events, generated from their schemas.
 * @param examples one message of each type
 */
export function asyncApiDocument(
  version: string,
  examples: ReadonlyMap<string, ExampleMessage>,
): AsyncApiDocument {
  const messages: [string, DocumentMessage][] = kinds.flatMap((kind) =>
    typesOf(kind).flatMap((type) => {
      const example = examples.get(type);
      if (example === undefined) throw new Error(`${type} has no example`);
      return [
        [type, structured(kind, type, example)] as [string, DocumentMessage],
        [`${type}.binary`, binary(kind, type, example)] as [string, DocumentMessage],
      ];
    }),
  );
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Browser Session Service: events',
      version,
      description: ABOUT,
      license: { name: 'MIT' },
      tags: kinds.map((name) => ({ name, description: about[name] })),
    },
    defaultContentType: 'application/json',
    servers,
    channels: Object.fromEntries(addressed.map((one) => [one.name, channelOf(one)])),
    operations: Object.fromEntries(addressed.map((one) => [operated(one), operationOf(one)])),
    components: {
      schemas: { CloudEvent: plain(CloudEvent), ...stateSchemas(), ...dataSchemas() },
      messages: Object.fromEntries(messages),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a JWT.' },
        apiKey: { type: 'userPassword', description: 'The API key is the password.' },
      },
    },
  };
}

/** The types of a kind that clients get: the fleet's events are delivered to operators. */
function typesOf(kind: AggregateKind): string[] {
  return Object.keys(aggregates[kind].events).filter((type) => isDelivered(kind, type));
}

function isDelivered(kind: AggregateKind, type: string): boolean {
  return isFleetKind(kind) || isPublic(type);
}

function stateSchemas(): Record<string, DocumentSchema> {
  return Object.fromEntries(
    kinds.map((kind) => [stateName(kind), publicSchema(kind, plain(aggregates[kind].state))]),
  );
}

function dataSchemas(): Record<string, DocumentSchema> {
  return Object.fromEntries(
    kinds.flatMap((kind) =>
      Object.entries(aggregates[kind].events)
        .filter(([type]) => isDelivered(kind, type))
        .map(([type, schema]) => [type, publicSchema(kind, plain(schema))]),
    ),
  );
}

function messageOf(kind: AggregateKind, type: string) {
  const { when, by } = meanings[type] ?? { when: '', by: '' };
  return {
    name: type,
    title: type,
    summary: when,
    tags: [{ name: kind }],
    'x-emitted-by': by,
  };
}

function structured(kind: AggregateKind, type: string, example: ExampleMessage): DocumentMessage {
  return {
    ...messageOf(kind, type),
    contentType: 'application/cloudevents+json',
    payload: {
      allOf: [
        reference('CloudEvent'),
        {
          type: 'object',
          properties: {
            type: { const: type },
            dataschema: { const: schemaOf(type) },
            data: reference(type),
            state: { anyOf: [reference(stateName(kind)), { type: 'null' }] },
          },
        },
      ],
    },
    examples: [{ name: 'golden', payload: cloudEventOf(example) }],
  };
}

function binary(kind: AggregateKind, type: string, example: ExampleMessage): DocumentMessage {
  // The fleet's events are delivered as stored: the message's own sequence is their position.
  const isForOrganizations = isPublic(type);
  const { headers, body } = isForOrganizations ? liveMessageOf(example) : example;
  return {
    ...messageOf(kind, type),
    contentType: 'application/json',
    headers: {
      type: 'object',
      required: ['ce-id', 'ce-type', 'ce-time', 'ce-dataschema'],
      properties: Object.fromEntries(
        Object.keys(headers).map((name) => [
          name,
          name === 'ce-type' ? { type: 'string', const: type } : { type: 'string' },
        ]),
      ),
    },
    payload: {
      type: 'object',
      required: ['data', 'state', 'stateVersion'],
      properties: {
        data: reference(type),
        state: {
          anyOf: [
            reference(stateName(kind)),
            {
              type: isForOrganizations ? 'null' : 'object',
              description: 'if another version of the service wrote the event',
            },
          ],
        },
        stateVersion: {
          type: 'integer',
          description: `version of the fold; current: ${aggregates[kind].stateVersion}`,
        },
      },
    },
    examples: [{ name: 'golden', headers, payload: body }],
  };
}

function cloudEventOf(example: ExampleMessage): object {
  return toPublicEvent(eventOf(example));
}

function liveMessageOf(example: ExampleMessage): Pick<ExampleMessage, 'headers' | 'body'> {
  const { headers, body } = toLiveMessage(
    toPublicMessage(eventOf(example), EXAMPLE_ORGANIZATION_SEQUENCE),
  );
  return { headers, body: JSON.parse(new TextDecoder().decode(body)) as object };
}

function eventOf({ subject, headers, body }: ExampleMessage): RecordedEvent {
  return decode(subject, (name) => headers[name] ?? '', JSON.stringify(body), EXAMPLE_SEQUENCE);
}
const EXAMPLE_SEQUENCE = 1234;
const EXAMPLE_ORGANIZATION_SEQUENCE = 57;

function channelOf({ address, description, kinds, form, server, parameters }: Addressed): object {
  const types = kinds.flatMap(typesOf);
  const names = types.map((type) => (form === 'structured' ? type : `${type}.binary`));
  return {
    address,
    description,
    servers: [{ $ref: `#/servers/${server}` }],
    ...(parameters === undefined ? {} : { parameters }),
    messages: Object.fromEntries(
      names.map((name) => [name, { $ref: `#/components/messages/${name}` }]),
    ),
  };
}

function operationOf({ name, summary, bindings }: Addressed): object {
  return {
    action: 'send',
    channel: { $ref: `#/channels/${name}` },
    summary,
    ...(bindings === undefined ? {} : { bindings }),
  };
}

function reference(schema: string): DocumentSchema {
  return { $ref: `#/components/schemas/${schema}` };
}

/** `session` → `SessionState`. */
function stateName(kind: AggregateKind): string {
  return `${kind[0]?.toUpperCase()}${kind.slice(1)}State`;
}

function schemaOf(type: string): string {
  return `urn:bss:event:${type}:${dataVersion(type)}`;
}

/** The schema without the schema library's internal properties. */
function plain(schema: TSchema): DocumentSchema {
  return JSON.parse(JSON.stringify(schema)) as DocumentSchema;
}
