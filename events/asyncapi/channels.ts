import type { AggregateKind } from '../subjects.ts';

/** A group of events with the address at which clients receive them. */
export type Addressed = {
  name: string;
  server: 'http' | 'nats';
  address: string;
  summary: string;
  description: string;
  kinds: readonly AggregateKind[];
  /** structured: one JSON object; binary: attributes as headers. */
  form: 'structured' | 'binary';
  parameters?: Record<string, { description: string }>;
  bindings?: object;
};

export const servers = {
  http: {
    host: '{host}',
    protocol: 'http',
    pathname: '/api',
    description: 'The API; `https` if a proxy terminates TLS.',
    variables: { host: { default: '127.0.0.1:8080', description: 'host and port' } },
    security: [{ $ref: '#/components/securitySchemes/bearer' }],
  },
  nats: {
    host: '{host}',
    protocol: 'nats',
    description:
      'The NATS server of the event store, with JetStream. The password is an API key. User ' +
      '`live` may subscribe to the live subjects of its organization, user `durable` may use ' +
      'the organization’s durable consumer `org_{organizationId}` of the stream `PUBLIC`.',
    variables: { host: { default: '127.0.0.1:4222', description: 'host and port' } },
    security: [{ $ref: '#/components/securitySchemes/apiKey' }],
  },
};

const organizationId = { organizationId: { description: 'the organization’s id' } };
const event = { event: { description: 'last word of the type, as `activated`' } };

const STREAM =
  'Server-Sent Events: `event` is the type, `id` the sequence, `data` the CloudEvent on one ' +
  'line. A comment is sent every 15 s. With `Last-Event-ID: n` the stream begins after n; 0: all ' +
  'events. A stream that the service ends early sends an event `end` with `{reason, message}`: ' +
  '`slow_reader`, `credential_revoked`, `shutting_down`, `newer_version`, `interrupted`.';

const LIVE =
  'Delivered at most once. `ce-orgsequence` counts the organization’s events: 1, 2, 3 …, so a ' +
  'number that is left out is an event that was missed. Missed events are in the stream.';

const query = {
  http: {
    method: 'GET',
    query: {
      type: 'object',
      properties: {
        from: { type: 'string', description: 'a sequence, or a time (ISO 8601 UTC)' },
        type: { type: 'array', items: { type: 'string' }, description: 'only these types' },
        label: {
          type: 'array',
          items: { type: 'string' },
          description: 'key=value: all must match',
        },
      },
    },
    bindingVersion: '0.3.0',
  },
};

export const addressed: readonly Addressed[] = [
  {
    name: 'organizationStream',
    server: 'http',
    address: '/events',
    summary: 'All events of the caller’s organization.',
    description: `${STREAM} Without a position it begins with new events.`,
    kinds: ['session', 'ledger', 'organization', 'profile'],
    form: 'structured',
    bindings: query,
  },
  {
    name: 'sessionStream',
    server: 'http',
    address: '/sessions/{sessionId}/events',
    summary: 'The events of one session.',
    description:
      `${STREAM} Without a position it begins with the session’s first event. It ends after the ` +
      'last one, `session.stopped` or `session.failed`; a reconnect after that is answered 204.',
    kinds: ['session'],
    form: 'structured',
    parameters: { sessionId: { description: 'the session’s id' } },
    bindings: query,
  },
  {
    name: 'sessionSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.session.{sessionId}.{event}',
    summary: 'The events of an organization’s sessions, live.',
    description: LIVE,
    kinds: ['session'],
    form: 'binary',
    parameters: { ...organizationId, sessionId: { description: 'the session’s id' }, ...event },
  },
  {
    name: 'ledgerSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.ledger.{event}',
    summary: 'The lines of an organization’s ledger, live.',
    description: LIVE,
    kinds: ['ledger'],
    form: 'binary',
    parameters: { ...organizationId, ...event },
  },
  {
    name: 'organizationSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.organization.{event}',
    summary: 'What happens to an organization itself, live.',
    description: LIVE,
    kinds: ['organization'],
    form: 'binary',
    parameters: { ...organizationId, ...event },
  },
  {
    name: 'profileSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.profile.{profileId}.{event}',
    summary: 'What happens to an organization’s profiles, live.',
    description: LIVE,
    kinds: ['profile'],
    form: 'binary',
    parameters: { ...organizationId, profileId: { description: 'the profile’s id' }, ...event },
  },
  {
    name: 'serverSubjects',
    server: 'nats',
    address: 'live.fleet.server.{serverId}.{event}',
    summary: 'What happens to servers, live. For operators.',
    description: 'Delivered at most once; missed events are in the stream.',
    kinds: ['server'],
    form: 'binary',
    parameters: { serverId: { description: 'the server’s id' }, ...event },
  },
  {
    name: 'workloadSubjects',
    server: 'nats',
    address: 'live.fleet.workload.{workloadId}.{event}',
    summary: 'What happens to browsers, live. For operators.',
    description: 'Delivered at most once; missed events are in the stream.',
    kinds: ['workload'],
    form: 'binary',
    parameters: { workloadId: { description: 'the browser’s id' }, ...event },
  },
  {
    name: 'archiveSubjects',
    server: 'nats',
    address: 'live.fleet.archive.{archiveId}.{event}',
    summary: 'What happens to the archive of old events, live. For operators.',
    description: 'Delivered at most once; missed events are in the stream.',
    kinds: ['archive'],
    form: 'binary',
    parameters: { archiveId: { description: 'always `events`' }, ...event },
  },
];

/** The name of the service's send operation for a channel, such as `sendOrganizationStream`. */
export function operated({ name }: Addressed): string {
  return `send${name[0]?.toUpperCase()}${name.slice(1)}`;
}
