/** The only place where stream names and subjects are built and parsed. */

export const EVENTS_STREAM = 'EVENTS';
export const TIMERS_STREAM = 'TIMERS';
export const ADVISORY_STREAM = 'ADVISORY';
export const DEAD_LETTERS_STREAM = 'DEAD_LETTERS';
/** The key-value bucket of leases, and its stream by the convention of NATS. */
export const LEASES_BUCKET = 'leases';
export const LEASES_STREAM = `KV_${LEASES_BUCKET}`;

/** The key-value bucket of MCP sessions, and its stream. */
export const MCP_BUCKET = 'mcp';
export const MCP_STREAM = `KV_${MCP_BUCKET}`;

/** The events that organizations may read, in the order of EVENTS. */
export const PUBLIC_STREAM = 'PUBLIC';

/**
 * Subjects of the EVENTS stream, and the subjects under which the server republishes them to
 * operators.
 */
export const EVENTS_SUBJECTS = ['evt.>', 'fleet.>'];
export const REPUBLISH = { src: 'fleet.>', dest: 'live.fleet.>' };

/** Subjects of the PUBLIC stream. */
export const PUBLIC_SUBJECTS = ['pub.>'];

/** Subjects of the TIMERS stream: schedules, and the messages that they publish when they fire. */
export const TIMERS_SUBJECTS = ['tmr.>'];
export const FIRED_SUBJECTS = 'tmr.fired.>';

/**
 * What the server says of work queues' messages that it stopped delivering. Not of PUBLIC: its
 * consumers are the organizations', which may terminate their messages as they like.
 */
export const ADVISORY_SUBJECTS = [...advisories('MAX_DELIVERIES'), ...advisories('MSG_TERMINATED')];

function advisories(kind: string): string[] {
  return [EVENTS_STREAM, TIMERS_STREAM].map(
    (stream) => `$JS.EVENT.ADVISORY.CONSUMER.${kind}.${stream}.>`,
  );
}

/** How far each webhook has come, and the attempts at its deliveries. */
export const WEBHOOKS_STREAM = 'WEBHOOKS';
export const WEBHOOKS_SUBJECTS = ['hook.progress.>'];
export const DELIVERIES_STREAM = 'DELIVERIES';
export const DELIVERIES_SUBJECTS = ['hook.attempt.>'];

/** Dead letters of projections, one subject per event. */
export const DEAD_LETTER_SUBJECTS = ['dead-letters.>'];

/** The aggregate of an event: the unit of consistency. */
export type AggregateRef =
  | { kind: 'session'; organizationId: string; id: string }
  | { kind: 'ledger'; organizationId: string }
  | { kind: 'organization'; organizationId: string }
  | { kind: 'profile'; organizationId: string; id: string }
  | { kind: 'server'; id: string }
  | { kind: 'workload'; id: string }
  | { kind: 'archive'; id: string };
export type AggregateKind = AggregateRef['kind'];

const FLEET_KINDS: readonly string[] = ['server', 'workload', 'archive'];

/** Whether aggregates of the kind belong to the service, and to no organization. */
export function isFleetKind(kind: string): boolean {
  return FLEET_KINDS.includes(kind);
}

export const timerKinds = [
  'queue-after',
  'queue-timeout',
  'expiry',
  'expiry-warning',
  'idle',
  'handoff',
] as const;
export type TimerKind = (typeof timerKinds)[number];

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** True if the text is a valid id: one token of a subject, 1 to 64 of [A-Za-z0-9_-]. */
export function isId(text: string): boolean {
  return TOKEN.test(text);
}

/** Ids that no organization may have: their timers would share the subjects of fired ones. */
const RESERVED = ['fired'];

/** True if the text is a valid id of an organization: an id that is not reserved. */
export function isOrganizationId(text: string): boolean {
  return isId(text) && !RESERVED.includes(text);
}

/**
 * An id as a subject's token.
 * @throws RangeError for an invalid id: a bug, or a tenant's attempt to leave its subjects
 */
function token(id: string): string {
  if (!TOKEN.test(id)) throw new RangeError(`not an id: ${JSON.stringify(id.slice(0, 80))}`);
  return id;
}

/** An organization's id as a subject's token; a reserved id is refused, too. */
function tenant(organizationId: string): string {
  if (!isOrganizationId(organizationId))
    throw new RangeError(`not for an organization: ${organizationId.slice(0, 80)}`);
  return organizationId;
}

/**
 * `evt.<org>.session.<id>`, `evt.<org>.ledger`, `fleet.server.<id>` …: the subject without the
 * event.
 */
function prefixOf(aggregate: AggregateRef): string {
  switch (aggregate.kind) {
    case 'session':
    case 'profile':
      return `evt.${token(aggregate.organizationId)}.${aggregate.kind}.${token(aggregate.id)}`;
    case 'ledger':
    case 'organization':
      return `evt.${token(aggregate.organizationId)}.${aggregate.kind}`;
    case 'server':
    case 'workload':
    case 'archive':
      return `fleet.${aggregate.kind}.${token(aggregate.id)}`;
  }
}

/** The aggregate's one canonical filter: all optimistic checks of it use this string. */
export function streamFilter(aggregate: AggregateRef): string {
  return `${prefixOf(aggregate)}.>`;
}

/** The subject of an event. `type` is `<kind>.<event>`, e.g. `session.stop-requested`. */
export function subjectOf(aggregate: AggregateRef, type: string): string {
  const [kind, event, ...more] = type.split('.');
  if (kind !== aggregate.kind || event === undefined || more.length > 0)
    throw new RangeError(`${type} is not an event of a ${aggregate.kind}`);
  return `${prefixOf(aggregate)}.${token(event)}`;
}

/**
 * The subject under which organizations get an event: `pub.<org>.session.<id>.<event>` …
 * @throws RangeError for an event of the fleet, which no organization may get
 */
export function publicSubjectOf(aggregate: AggregateRef, type: string): string {
  const subject = subjectOf(aggregate, type);
  if (!('organizationId' in aggregate))
    throw new RangeError(`${subject} belongs to no organization`);
  return `pub.${subject.slice('evt.'.length)}`;
}

/** The subject on which organizations hear a message of PUBLIC as it happens. */
export function liveSubjectOf(publicSubject: string): string {
  return `live.evt.${publicSubject.slice('pub.'.length)}`;
}

/** Filter for the events that an organization gets. */
export function publicFilterOf(organizationId: string): string {
  return `pub.${token(organizationId)}.>`;
}

const ID = '([A-Za-z0-9_-]{1,64})';
/** `evt.<org>.session.<id>.<event>`, `evt.<org>.ledger.<event>`, `fleet.server.<id>.<event>` … */
const SUBJECT = new RegExp(
  `^(?:evt\\.${ID}\\.(?:(session|profile)\\.${ID}|(ledger|organization))|` +
    `fleet\\.(server|workload|archive)\\.${ID})\\.${ID}$`,
);

/** Parses a subject of the EVENTS stream; null if it is not one. */
export function parseSubject(subject: string): { aggregate: AggregateRef; type: string } | null {
  const found = SUBJECT.exec(subject);
  if (found === null) return null;
  const [, organizationId = '', named, id = '', own, fleet, fleetId = '', event] = found;
  if (named !== undefined)
    return {
      aggregate: { kind: named as 'session' | 'profile', organizationId, id },
      type: `${named}.${event}`,
    };
  if (own !== undefined)
    return {
      aggregate: { kind: own as 'ledger' | 'organization', organizationId },
      type: `${own}.${event}`,
    };
  const kind = fleet as 'server' | 'workload' | 'archive';
  return { aggregate: { kind, id: fleetId }, type: `${kind}.${event}` };
}

/** The organization of an event's subject, of any type; null for an event of the fleet. */
export function organizationIn(subject: string): string | null {
  const [root, organizationId = ''] = subject.split('.');
  return root === 'evt' && isId(organizationId) ? organizationId : null;
}

/** Filters for subscriptions and consumers of the event store. */
export const filters = {
  all: ['evt.>', 'fleet.>'],
  /** All events that organizations may get. */
  tenants: ['evt.>'],
  sessions: ['evt.*.session.>'],
  /** Events after which a session waits for a server. */
  sessionRequests: ['evt.*.session.*.requested', 'evt.*.session.*.requeued'],
  /** Events after which a session's timers change. */
  sessionTimers: [
    'requested',
    'requeued',
    'activated',
    'extended',
    'handoff-requested',
    'stopped',
    'failed',
  ].map((event) => `evt.*.session.*.${event}`),
  organizations: ['evt.*.organization.>'],
  profiles: ['evt.*.profile.>'],
  ledgersAndSessions: ['evt.*.ledger.>', 'evt.*.session.>'],
  servers: ['fleet.server.>'],
  workloads: ['fleet.workload.>'],
  /**
   * Events that start and end a server's life, and those that change whether it accepts sessions.
   */
  serverLives: ['joined', 'draining', 'drained', 'undrained', 'left', 'lost'].map(
    (event) => `fleet.server.*.${event}`,
  ),
  fleet: ['fleet.>'],
  /** Events after which a session waits for a server, or does so no more. */
  waiting: [
    'requested',
    'requeued',
    'assigned',
    'activated',
    'stop-requested',
    'stopped',
    'failed',
  ].map((event) => `evt.*.session.*.${event}`),
  /** Decisions on the sizes of servers' pools. */
  poolDecisions: ['fleet.server.*.pool-resized'],
  /** What a pool was asked for, what it had for it, and its own decisions. */
  poolUse: [
    ...['requested', 'queued', 'assigned', 'activated', 'stop-requested', 'stopped', 'failed'].map(
      (event) => `evt.*.session.*.${event}`,
    ),
    ...['idle', 'assigned', 'terminating', 'terminated'].map(
      (event) => `fleet.workload.*.${event}`,
    ),
    'fleet.server.*.pool-resized',
  ],
};

/**
 * Whether one of the filters matches, with the server's wildcards: `*` for one token, `>` for the
 * rest.
 */
export function matchesAnyFilter(filters: readonly string[], subject: string): boolean {
  return subjectMatcher(filters)(subject);
}

/** The same for many subjects of EVENTS. */
export function subjectMatcher(filters: readonly string[]): (subject: string) => boolean {
  if (EVENTS_SUBJECTS.every((one) => filters.includes(one))) return () => true;
  const all = filters.map((filter) => filter.split('.'));
  return (subject) => {
    const tokens = subject.split('.');
    return all.some((wanted) => {
      const isOpen = wanted.at(-1) === '>';
      if (isOpen ? tokens.length < wanted.length : tokens.length !== wanted.length) return false;
      return wanted.every((token, at) => token === '*' || token === '>' || token === tokens[at]);
    });
  };
}

/** The session's filter when its organization is unknown: ids are unique over all organizations. */
export function sessionAnywhere(id: string): string {
  return `evt.*.session.${token(id)}.>`;
}

/**
 * A subject of the one aggregate that the filter selects, of a session also where its organization
 * is a wildcard; null: it may select several.
 */
export function subjectOfOne(filter: string): string | null {
  const tokens = filter.split('.').map((one) => (one === '>' || one === '*' ? 'any' : one));
  const isAny = (at: number) => tokens[at] !== filter.split('.')[at];
  const isSession = tokens[0] === 'evt' && tokens[2] === 'session';
  const isProfile = tokens[0] === 'evt' && tokens[2] === 'profile';
  if (isProfile && isAny(1)) return null;
  const named = isSession || isProfile || tokens[0] === 'fleet' ? [tokens.length - 2] : [1, 2];
  if (named.some(isAny)) return null;
  const subject = tokens.join('.');
  return parseSubject(subject) === null ? null : subject;
}

/** All sessions of an organization. */
export function sessionsOf(organizationId: string): string {
  return `evt.${token(organizationId)}.session.>`;
}

/**
 * Filters for the events of one organization (null: of all, and the fleet's) of one type (null:
 * any). Empty if an organization has no events of the type: those of the fleet.
 */
export function filtersFor(organizationId: string | null, type: string | null): string[] {
  const organization = organizationId === null ? '*' : token(organizationId);
  if (type === null) return organizationId === null ? filters.all : [`evt.${organization}.>`];
  const [kind = '', event = '', ...more] = type.split('.');
  if (more.length > 0) throw new RangeError(`${type} is not an event type`);
  if (isFleetKind(kind)) return organizationId === null ? [`fleet.${kind}.*.${token(event)}`] : [];
  const aggregate = kind === 'session' || kind === 'profile' ? `${kind}.*` : token(kind);
  return [`evt.${organization}.${aggregate}.${token(event)}`];
}

/**
 * Filters for all aggregates of a kind; with an organization, for its own; with an id, for that
 * session, profile, server or browser. Empty: the fleet's belong to no organization.
 */
export function filtersOfKind(
  kind: AggregateKind,
  { organizationId = '*', id = '*' }: { organizationId?: string; id?: string },
): string[] {
  const [organization, one] = [organizationId, id].map((name) =>
    name === '*' ? name : token(name),
  );
  if (kind === 'ledger' || kind === 'organization') return [`evt.${organization}.${kind}.>`];
  if (kind === 'session' || kind === 'profile') return [`evt.${organization}.${kind}.${one}.>`];
  return organizationId === '*' ? [`fleet.${kind}.${one}.>`] : [];
}

/** The subject of a session's timer; publishing to it again replaces the timer. */
export function timerSubject(organizationId: string, sessionId: string, kind: TimerKind): string {
  return `tmr.${tenant(organizationId)}.${token(sessionId)}.${kind}`;
}

/** All timers of a session. */
export function timersFilter(organizationId: string, sessionId: string): string {
  return `tmr.${tenant(organizationId)}.${token(sessionId)}.>`;
}

/** All timers of an organization's sessions. */
export function organizationTimersFilter(organizationId: string): string {
  return `tmr.${tenant(organizationId)}.>`;
}

/** The subject of a timer's firing. */
export function firedSubject(organizationId: string, sessionId: string, kind: TimerKind): string {
  return `tmr.fired.${tenant(organizationId)}.${token(sessionId)}.${kind}`;
}

/** The subject of a projection's dead letter: the projection's version and the event's sequence. */
export function deadLetterSubject(projection: string, sequence: number): string {
  if (!/^[A-Za-z0-9_:-]{1,128}$/.test(projection) || !Number.isSafeInteger(sequence))
    throw new RangeError(`not a dead letter of a projection: ${projection} ${sequence}`);
  return `dead-letters.${projection}.${sequence}`;
}

/**
 * The subject on which a work queue's consumers accept requests to handle one dead letter again.
 */
export function retrySubject(stream: string, queue: string): string {
  return `retry.${token(stream)}.${token(queue)}`;
}

/** The subject on which a server is asked about a session that it runs. */
export function askSubject(kind: 'screenshot' | 'files', serverId: string): string {
  return `ask.${kind}.${token(serverId)}`;
}

/** The subject of a webhook's progress; publishing to it again replaces the progress. */
export function webhookProgressSubject(webhookId: string): string {
  return `hook.progress.${token(webhookId)}`;
}

/** The subject of the attempts at a webhook's deliveries. */
export function webhookAttemptsSubject(webhookId: string): string {
  return `hook.attempt.${token(webhookId)}`;
}
