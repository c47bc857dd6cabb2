import type { AggregateKind } from './subjects.ts';

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
    description: 'The API; `https` where a proxy ends TLS.',
    variables: { host: { default: '127.0.0.1:8080', description: 'host and port' } },
    security: [{ $ref: '#/components/securitySchemes/bearer' }],
  },
  nats: {
    host: '{host}',
    protocol: 'nats',
    description:
      'The event log’s own server, JetStream included. An API key is the password: as user ' +
      '`live` ' +
      'it opens the live subjects of its organization, as user `durable` the organization’s ' +
      'durable consumer `org_{organizationId}` of the stream `PUBLIC`, and nothing else.',
    variables: { host: { default: '127.0.0.1:4222', description: 'host and port' } },
    security: [{ $ref: '#/components/securitySchemes/apiKey' }],
  },
};

const organizationId = { organizationId: { description: 'the organization’s id' } };
const event = { event: { description: 'last word of the type, as `activated`' } };

const STREAM =
  'Server-Sent Events: `event` is the type, `id` the sequence, `data` the CloudEvent on one ' +
  'line. ' +
  'A comment comes every 15 s. `Last-Event-ID: n` goes on behind n, 0 is the whole backlog. A ' +
  'stream that ends before its time says why in an event `end` with `{reason, message}`: ' +
  '`slow_reader`, `credential_revoked`, `shutting_down`, `interrupted`.';

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
    description: `${STREAM} Without a position it begins with what comes from now on.`,
    kinds: ['session', 'ledger', 'organization'],
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
    description: 'At most once: what is missed is in the stream.',
    kinds: ['session'],
    form: 'binary',
    parameters: { ...organizationId, sessionId: { description: 'the session’s id' }, ...event },
  },
  {
    name: 'ledgerSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.ledger.{event}',
    summary: 'The lines of an organization’s ledger, live.',
    description: 'At most once: what is missed is in the stream.',
    kinds: ['ledger'],
    form: 'binary',
    parameters: { ...organizationId, ...event },
  },
  {
    name: 'organizationSubjects',
    server: 'nats',
    address: 'live.evt.{organizationId}.organization.{event}',
    summary: 'What happens to an organization itself, live.',
    description: 'At most once: what is missed is in the stream.',
    kinds: ['organization'],
    form: 'binary',
    parameters: { ...organizationId, ...event },
  },
  {
    name: 'serverSubjects',
    server: 'nats',
    address: 'live.fleet.server.{serverId}.{event}',
    summary: 'What happens to servers, live. For operators.',
    description: 'At most once: what is missed is in the stream.',
    kinds: ['server'],
    form: 'binary',
    parameters: { serverId: { description: 'the server’s id' }, ...event },
  },
  {
    name: 'workloadSubjects',
    server: 'nats',
    address: 'live.fleet.workload.{workloadId}.{event}',
    summary: 'What happens to browsers, live. For operators.',
    description: 'At most once: what is missed is in the stream.',
    kinds: ['workload'],
    form: 'binary',
    parameters: { workloadId: { description: 'the browser’s id' }, ...event },
  },
];

/** The name of the service's send operation for a channel, such as `sendOrganizationStream`. */
export function operated({ name }: Addressed): string {
  return `send${name[0]?.toUpperCase()}${name.slice(1)}`;
}
