import { Type, type Static } from 'typebox';
import type { RecordedEvent } from './events.ts';
import type { AggregateRef } from './subjects.ts';
import { dataVersion } from './upcast.ts';

const Text = (description: string, example: string) =>
  Type.String({ description, examples: [example] });

/**
 * An event as external consumers get it: CloudEvents 1.0, structured JSON mode. In addition to the
 * standard attributes it has its position in the event store, its actor and cause, and the state
 * after it (null if that was written by another version of the fold).
 */
export const CloudEvent = Type.Object(
  {
    specversion: Type.Literal('1.0'),
    id: Text('unique', 'evt_session_activated'),
    type: Text('what happened, `<aggregate>.<event>`', 'session.activated'),
    source: Text('the service', '/browser-session-service'),
    subject: Text('id of the session, organization, server or workload', 'ses_1'),
    time: Text('when it was decided: ISO 8601 UTC, milliseconds', '2026-03-01T12:00:03.000Z'),
    datacontenttype: Type.Literal('application/json'),
    dataschema: Text('type and version of `data`', 'urn:bss:event:session.activated:1'),
    sequence: Type.Integer({ minimum: 1, description: 'position in the event store; increases' }),
    actor: Text('actor that caused the event, `<kind>:<id>`, the id percent-encoded', 'user:ada'),
    via: Type.Optional(
      Type.String({
        description:
          'door that the actor’s request came through: `mcp`, `webdriver`, `one-call`; ' +
          'absent: the REST API, or no request',
        examples: ['mcp'],
      }),
    ),
    client: Type.Optional(
      Type.String({
        description: 'how the program behind that door names itself, percent-encoded; unchecked',
        examples: ['agent%201.0'],
      }),
    ),
    correlationid: Text('the same for all events caused by one request', 'cor_1'),
    causationid: Type.Union([Type.String(), Type.Null()], {
      description: 'id of the event that caused this one; null: none',
    }),
    traceparent: Type.Optional(
      Type.String({ description: 'W3C Trace Context of the cause; absent: not traced' }),
    ),
    data: Type.Unknown({ description: 'payload of the event' }),
    state: Type.Unknown({
      description: 'state after the event; null if another version of the service wrote it',
    }),
  },
  { description: 'CloudEvents 1.0, structured JSON mode' },
);
export type CloudEvent = Static<typeof CloudEvent>;

export function toCloudEvent(event: RecordedEvent): CloudEvent {
  const { id, type, time, sequence, metadata, data, state } = event;
  return {
    specversion: '1.0',
    id,
    type,
    source: '/browser-session-service',
    subject: nameOf(event.aggregate),
    time,
    datacontenttype: 'application/json',
    dataschema: `urn:bss:event:${type}:${dataVersion(type)}`,
    sequence,
    actor: `${metadata.actor.kind}:${encodeURIComponent(metadata.actor.id)}`,
    ...(metadata.actor.via === undefined ? {} : { via: metadata.actor.via }),
    ...(metadata.actor.client === undefined
      ? {}
      : { client: encodeURIComponent(metadata.actor.client) }),
    correlationid: metadata.correlationId,
    causationid: metadata.causationId,
    ...(metadata.traceparent === undefined ? {} : { traceparent: metadata.traceparent }),
    data,
    state,
  };
}

function nameOf(aggregate: AggregateRef): string {
  return 'id' in aggregate ? aggregate.id : aggregate.organizationId;
}
