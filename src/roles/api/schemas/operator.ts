import { Type, type TArray, type TSchema } from 'typebox';
import { aggregates } from '#events/events.ts';
import { tierNames } from '#events/organization.ts';
import { Count, Nullable, Timestamp, Words } from './fields.ts';
import { Door } from './history.ts';

/** Schemas of what operators see: the whole service. */

export const AGGREGATE_KINDS = Object.keys(aggregates);

const SERVER = 'srv_Xb4n9T6kLw0yPq2mVz8sHg';
const SESSION = 'ses_J5mYt3QKX2m0bq1uHcR8Vw';
const AT = '2026-11-20T09:30:00.000Z';
const Text = (example: string, description?: string) =>
  Type.String({ examples: [example], ...(description && { description }) });
function list<Name extends string, Item extends TSchema, More extends Record<string, TSchema>>(
  name: Name,
  items: Item,
  more: More,
  title: string,
) {
  // A computed name widens the type of the object.
  const fields = { [name]: Type.Array(items), ...more } as Record<Name, TArray<Item>> & More;
  return Type.Object(fields, { title });
}
const Next = Nullable(Type.String(), {
  description: 'for the next page; null on the last page',
  examples: [null],
});
const Limit = Nullable(Type.String(), {
  description: 'resource that prevents further launches: memory or cpu',
  examples: [null],
});

export const Operator = Type.Object({ operator: Type.Literal(true) }, { title: 'Operator' });

export const OperatorOrganizations = list(
  'organizations',
  Type.Object(
    {
      id: Text('acme'),
      name: Text('Acme'),
      tier: Words(tierNames, { examples: ['pro'] }),
      created_at: Timestamp(AT),
      open_sessions: Count(3),
      sessions_limit: Count(50),
      credits_available: Type.Integer({ examples: [29_500] }),
      credits_reserved: Count(270),
      keys: Count(2, 'API keys that are not revoked'),
    },
    { title: 'OperatorOrganization' },
  ),
  { next: Next },
  'OperatorOrganizations',
);

export const OperatorServer = Type.Object(
  {
    id: Text(SERVER),
    ip: Text('10.0.0.7'),
    status: Words(['live', 'draining', 'drained', 'left', 'lost'], { examples: ['live'] }),
    pool_max: Count(4),
    browser: Nullable(Type.String(), { description: 'Chromium’s version', examples: ['143.0.1'] }),
    browser_built_at: Nullable(Type.String(), { examples: [AT] }),
    target: Nullable(Type.Integer(), { description: 'idle browsers to keep', examples: [1] }),
    limited_by: Limit,
    leaks: Nullable(Type.Integer(), {
      description: 'browsers and sessions without the other, as of the last comparison',
      examples: [0],
    }),
    idle: Count(1),
    busy: Count(3),
    provisioning: Count(0),
    launching: Count(0),
    terminating: Count(0),
  },
  { title: 'OperatorServer' },
);
export const OperatorServers = list('servers', OperatorServer, {}, 'OperatorServers');
export const DrainedServer = Type.Object(
  { id: Text(SERVER), status: Text('draining') },
  { title: 'DrainedServer' },
);

const PoolPoint = Type.Object(
  {
    at: Timestamp(AT),
    total: Count(4),
    idle: Count(1),
    busy: Count(3),
    provisioning: Count(0),
    launching: Count(0),
    terminating: Count(0),
    waiting: Count(0, 'sessions that no server has accepted: for operators of all organizations'),
  },
  { title: 'PoolPoint' },
);
export const PoolSeries = Type.Object(
  {
    from: Timestamp('2026-11-20T09:30:00.000Z'),
    to: Timestamp('2026-11-20T10:30:00.000Z'),
    step_ms: Count(30_000),
    points: Type.Array(PoolPoint, { description: 'oldest first' }),
  },
  { title: 'PoolSeries' },
);

export const PoolDecisions = list(
  'decisions',
  Type.Object(
    {
      sequence: Count(48_211, 'position in the event store'),
      time: Timestamp(AT),
      server_id: Text(SERVER),
      policy: Count(4, 'version of the policy'),
      inputs: Type.Unsafe({
        type: 'object',
        additionalProperties: true,
        description: 'all that the decision follows from',
        examples: [{ idle: 0, busy: 3, waiting: 1 }],
      }),
      decision: Type.Unsafe({
        type: 'object',
        additionalProperties: true,
        examples: [{ need: 2, target: 2, launch: 2 }],
      }),
    },
    { title: 'PoolDecision' },
  ),
  { next: Next },
  'PoolDecisions',
);

export const OperatorEvents = list(
  'events',
  Type.Object(
    {
      sequence: Count(48_211, 'position in the event store'),
      id: Text('evt_c0Zq4nRk1mT8yXwU5sLd2B'),
      type: Text('workload.idle'),
      time: Timestamp(AT),
      kind: Words(AGGREGATE_KINDS, { examples: ['workload'] }),
      organization_id: Nullable(Type.String(), {
        description: 'null: of the fleet',
        examples: [null],
      }),
      aggregate_id: Text('wl_V68jutntSyS7FkVejEDlGg', 'session, browser, server or organization'),
      actor: Type.Object({ kind: Text('service'), id: Text('provisioner'), ...Door }),
      sentence: Text('browser wl_V68jutntSyS7FkVejEDlGg was ready after 472ms'),
    },
    { title: 'OperatorEvent' },
  ),
  { next: Next },
  'OperatorEvents',
);

const WaitingSession = Type.Object(
  {
    session_id: Text(SESSION),
    organization_id: Text('acme'),
    since: Timestamp(AT),
    position: Type.Integer({ minimum: 1, examples: [2], description: 'in the whole queue' }),
    estimated_wait_seconds: Nullable(Type.Integer(), {
      description: 'at the present pace; null: no session got a browser lately',
      examples: [12],
    }),
    why: Text('All servers are full (4 of 4 browsers). 1 session waits before it.'),
  },
  { title: 'WaitingSession' },
);
export const Queue = Type.Object(
  {
    waiting: Type.Array(WaitingSession, { description: 'the next one first, at most 1,000' }),
    total: Count(1),
  },
  { title: 'Queue' },
);

const Progress = Nullable(
  Type.Object({ done: Count(48_000), of: Count(96_000) }, { description: 'sequences' }),
);
const taskFields = {
  state: Words(['running', 'done', 'failed'], { examples: ['done'] }),
  started_at: Timestamp(AT),
  ended_at: Nullable(Type.String(), { examples: [AT] }),
  progress: Progress,
  failure: Nullable(Type.String(), { examples: [null] }),
};

export const Rebuild = Type.Object(
  { name: Text('session-view'), ...taskFields },
  { title: 'Rebuild', description: 'in this process' },
);
export const ReadModels = list(
  'read_models',
  Type.Object(
    {
      name: Text('session-view'),
      version: Count(1),
      views: Count(120),
      checkpoint: Count(48_211, 'position in the event store up to which it is folded'),
      head: Count(48_211, 'the last position'),
      lag_events: Nullable(Type.Integer(), { examples: [0] }),
      lag_ms: Nullable(Type.Integer(), {
        description: 'age of the oldest event that it lacks; null: another version’s',
        examples: [0],
      }),
      status: Text('in use'),
    },
    { title: 'ReadModel' },
  ),
  { rebuild: Nullable(Rebuild, { description: 'the last rebuild of this process' }) },
  'ReadModels',
);

const deadLetterFields = {
  id: Text('48211.session-view:v1'),
  kind: Words(['projection', 'work_queue'], { examples: ['projection'] }),
  stream: Text('EVENTS'),
  sequence: Count(48_211),
  failed_by: Text('session-view:v1'),
  subject: Nullable(Type.String(), { examples: [null] }),
  reason: Text('its data does not fit the schema'),
  at: Timestamp(AT),
  attempts: Count(1, 'how often it could not be handled'),
};
export const DeadLetters = list(
  'dead_letters',
  Type.Object(deadLetterFields, { title: 'DeadLetter' }),
  { total: Count(1), next: Next },
  'DeadLetters',
);
export const DecidedDeadLetter = Type.Object(
  {
    ...deadLetterFields,
    outcome: Words(['mended', 'fails', 'skipped'], {
      description: '`fails`: it stays a dead letter, and `failure` says why',
      examples: ['mended'],
    }),
    failure: Nullable(Type.String(), { examples: [null] }),
  },
  { title: 'DecidedDeadLetter' },
);

const AuditedOrganization = Type.Object(
  {
    organization_id: Text('acme'),
    agrees: Type.Boolean({ examples: [true] }),
    sessions: Count(120),
    open: Count(3),
    slots_in_use: Count(3),
    credits_granted: Count(30_000),
    credits_available: Type.Integer({ examples: [29_500] }),
    credits_reserved: Count(270),
    credits_used: Count(230),
    differences: Type.Array(Type.String(), { examples: [[]] }),
  },
  { title: 'AuditedOrganization' },
);
const Finding = Type.Object(
  {
    segment: Count(1),
    line: Nullable(Type.Integer(), { examples: [17] }),
    problem: Text('its hash is not the one that the next line names'),
  },
  { title: 'ArchiveFinding' },
);
export const Audits = Type.Object(
  {
    ledgers: Nullable(
      Type.Object(
        {
          ...taskFields,
          result: Nullable(
            Type.Object({
              agrees: Type.Boolean({ examples: [true] }),
              up_to: Count(48_211),
              unreadable: Count(0, 'events that could not be read'),
              organizations: Type.Array(AuditedOrganization, {
                description: 'those that differ first; at most 1,000',
              }),
            }),
          ),
        },
        { title: 'LedgerAudit', description: 'the last audit of this process' },
      ),
    ),
    archive: Nullable(
      Type.Object(
        {
          ...taskFields,
          result: Nullable(
            Type.Object({
              agrees: Type.Boolean({ examples: [true] }),
              segments: Count(12),
              records: Count(48_000, 'events in them'),
              signer: Nullable(Type.String(), {
                description:
                  'fingerprint of the key that must have signed; null: nothing is archived',
                examples: ['kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'],
              }),
              findings: Type.Array(Finding, { description: 'at most 1,000', examples: [[]] }),
            }),
          ),
        },
        {
          title: 'ArchiveAudit',
          description: 'hashes, chain and signatures of the archived log; the last of this process',
        },
      ),
    ),
  },
  { title: 'Audits' },
);
