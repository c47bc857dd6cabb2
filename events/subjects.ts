/** Every stream name and subject is built and read here and nowhere else. */

export const EVENTS_STREAM = 'EVENTS';
export const TIMERS_STREAM = 'TIMERS';
export const ADVISORY_STREAM = 'ADVISORY';
/** A compressed copy of EVENTS, for what reads much of it. */
export const ARCHIVE_STREAM = 'ARCHIVE';
export const PARKED_STREAM = 'PARKED';

/** What organizations may read of EVENTS, in its order. */
export const PUBLIC_STREAM = 'PUBLIC';

/** Subjects of the EVENTS stream, and where the server republishes what operators may hear. */
export const EVENTS_SUBJECTS = ['evt.>', 'fleet.>'];
export const REPUBLISH = { src: 'fleet.>', dest: 'live.fleet.>' };

/** Subjects of the PUBLIC stream, and where organizations hear its messages. */
export const PUBLIC_SUBJECTS = ['pub.>'];
export const PUBLIC_REPUBLISH = { src: 'pub.>', dest: 'live.evt.>' };

/** Subjects of the TIMERS stream: schedules, and what they leave when they fire. */
export const TIMERS_SUBJECTS = ['tmr.>'];
export const FIRED_SUBJECTS = 'tmr.fired.>';

export const ADVISORY_SUBJECTS = [
  '$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>',
  '$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>',
];

/** Events that a projection could make nothing of, one subject each. */
export const PARKED_SUBJECTS = ['parked.>'];

/** What an event belongs to: the unit of consistency. */
export type AggregateRef =
  | { kind: 'session'; organizationId: string; id: string }
  | { kind: 'ledger'; organizationId: string }
  | { kind: 'organization'; organizationId: string }
  | { kind: 'server'; id: string }
  | { kind: 'workload'; id: string };
export type AggregateKind = AggregateRef['kind'];

export const timerKinds = [
  'queue-after',
  'queue-timeout',
  'expiry',
  'expiry-warning',
  'idle',
] as const;
export type TimerKind = (typeof timerKinds)[number];

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** True where the text may be an id: one token of a subject, 1 to 64 of [A-Za-z0-9_-]. */
export function isId(text: string): boolean {
  return TOKEN.test(text);
}

/** Ids no organization may have: their timers would wait where the fired ones land. */
const RESERVED = ['fired'];

/** True where the text may be the id of an organization: an id, and none that is reserved. */
export function isOrganizationId(text: string): boolean {
  return isId(text) && !RESERVED.includes(text);
}

/**
 * An id as a subject's token. @throws RangeError where it is none: a bug, and a tenant's escape.
 */
function token(id: string): string {
  if (!TOKEN.test(id)) throw new RangeError(`not an id: ${JSON.stringify(id.slice(0, 80))}`);
  return id;
}

/** The same of an organization, where a reserved one would be in another's place. */
function tenant(organizationId: string): string {
  if (!isOrganizationId(organizationId))
    throw new RangeError(`not for an organization: ${organizationId.slice(0, 80)}`);
  return organizationId;
}

/**
 * `evt.<org>.session.<id>`, `evt.<org>.ledger`, `fleet.server.<id>` …: the subject less the event.
 */
function prefixOf(aggregate: AggregateRef): string {
  switch (aggregate.kind) {
    case 'session':
      return `evt.${token(aggregate.organizationId)}.session.${token(aggregate.id)}`;
    case 'ledger':
    case 'organization':
      return `evt.${token(aggregate.organizationId)}.${aggregate.kind}`;
    case 'server':
    case 'workload':
      return `fleet.${aggregate.kind}.${token(aggregate.id)}`;
  }
}

/** The aggregate's one canonical filter: every optimistic check of it uses this string. */
export function filterOf(aggregate: AggregateRef): string {
  return `${prefixOf(aggregate)}.>`;
}

/** The subject of an event. `type` is `<kind>.<event>`, e.g. `session.stop-requested`. */
export function subjectOf(aggregate: AggregateRef, type: string): string {
  const [kind, event, ...more] = type.split('.');
  if (kind !== aggregate.kind || event === undefined || more.length > 0)
    throw new RangeError(`${type} is no event of a ${aggregate.kind}`);
  return `${prefixOf(aggregate)}.${token(event)}`;
}

/**
 * The subject under which organizations get an event: `pub.<org>.session.<id>.<event>` …
 * @throws RangeError for one of the fleet's, which none of them may hear
 */
export function publicSubjectOf(aggregate: AggregateRef, type: string): string {
  const subject = subjectOf(aggregate, type);
  if (!('organizationId' in aggregate)) throw new RangeError(`${subject} is no organization's`);
  return `pub.${subject.slice('evt.'.length)}`;
}

/** Filter for what an organization gets. */
export function publicFilterOf(organizationId: string): string {
  return `pub.${token(organizationId)}.>`;
}

/** Reads a subject of the EVENTS stream; null where it is none. */
export function parseSubject(subject: string): { aggregate: AggregateRef; type: string } | null {
  const tokens = subject.split('.');
  if (!tokens.every(isId)) return null;
  const type = `${tokens.at(-2)}.${tokens.at(-1)}`;
  if (tokens[0] === 'evt' && tokens[2] === 'session' && tokens.length === 5) {
    const [, organizationId = '', , id = '', event] = tokens;
    return { aggregate: { kind: 'session', organizationId, id }, type: `session.${event}` };
  }
  if (tokens[0] === 'evt' && tokens.length === 4) {
    const [, organizationId = '', kind] = tokens;
    if (kind === 'ledger' || kind === 'organization')
      return { aggregate: { kind, organizationId }, type };
  }
  if (tokens[0] === 'fleet' && tokens.length === 4) {
    const [, kind, id = '', event] = tokens;
    if (kind === 'server' || kind === 'workload')
      return { aggregate: { kind, id }, type: `${kind}.${event}` };
  }
  return null;
}

/** Filters for those who follow or consume the log. */
export const filters = {
  all: ['evt.>', 'fleet.>'],
  /** All that organizations may hear of themselves. */
  tenants: ['evt.>'],
  sessions: ['evt.*.session.>'],
  /** Those after which a session waits for a server to take it. */
  sessionRequests: ['evt.*.session.*.requested', 'evt.*.session.*.requeued'],
  /** Those after which a session's timers change. */
  sessionTimers: ['requested', 'requeued', 'activated', 'extended', 'stopped', 'failed'].map(
    (event) => `evt.*.session.*.${event}`,
  ),
  organizations: ['evt.*.organization.>'],
  ledgersAndSessions: ['evt.*.ledger.>', 'evt.*.session.>'],
  servers: ['fleet.server.>'],
  workloads: ['fleet.workload.>'],
  /** Those that begin and end a server's life, and say whether it takes sessions. */
  serverLives: ['joined', 'draining', 'drained', 'undrained', 'left', 'lost'].map(
    (event) => `fleet.server.*.${event}`,
  ),
  fleet: ['fleet.>'],
};

/**
 * Whether a filter with the server's wildcards, `*` for one token and `>` for the rest, matches.
 */
export function isAmong(filters: readonly string[], subject: string): boolean {
  const tokens = subject.split('.');
  return filters.some((filter) => {
    const wanted = filter.split('.');
    const isOpen = wanted.at(-1) === '>';
    if (isOpen ? tokens.length < wanted.length : tokens.length !== wanted.length) return false;
    return wanted.every((token, at) => token === '*' || token === '>' || token === tokens[at]);
  });
}

/** The session's filter where its organization is not known: ids are unique over all of them. */
export function sessionAnywhere(id: string): string {
  return `evt.*.session.${token(id)}.>`;
}

/** All sessions of an organization. */
export function sessionsOf(organizationId: string): string {
  return `evt.${token(organizationId)}.session.>`;
}

/**
 * Filters for the events of one organization (null: of all, and the fleet's) that are of one type
 * (null: of any). None where an organization has no such events: those of the fleet.
 */
export function filtersFor(organizationId: string | null, type: string | null): string[] {
  const organization = organizationId === null ? '*' : token(organizationId);
  if (type === null) return organizationId === null ? filters.all : [`evt.${organization}.>`];
  const [kind = '', event = '', ...more] = type.split('.');
  if (more.length > 0) throw new RangeError(`${type} is no type of an event`);
  if (kind === 'server' || kind === 'workload')
    return organizationId === null ? [`fleet.${kind}.*.${token(event)}`] : [];
  const aggregate = kind === 'session' ? 'session.*' : token(kind);
  return [`evt.${organization}.${aggregate}.${token(event)}`];
}

/** Where a timer of a session waits; publishing there again replaces it. */
export function timerSubject(organizationId: string, sessionId: string, kind: TimerKind): string {
  return `tmr.${tenant(organizationId)}.${token(sessionId)}.${kind}`;
}

/** All timers of a session. */
export function timersFilter(organizationId: string, sessionId: string): string {
  return `tmr.${tenant(organizationId)}.${token(sessionId)}.>`;
}

/** Where a timer's firing lands. */
export function firedSubject(organizationId: string, sessionId: string, kind: TimerKind): string {
  return `tmr.fired.${tenant(organizationId)}.${token(sessionId)}.${kind}`;
}

/**
 * Where it is kept that a projection's version could make nothing of the event of that sequence.
 */
export function parkedSubject(projection: string, sequence: number): string {
  if (!/^[A-Za-z0-9_:-]{1,128}$/.test(projection) || !Number.isSafeInteger(sequence))
    throw new RangeError(`not parked by a projection: ${projection} ${sequence}`);
  return `parked.${projection}.${sequence}`;
}

/** Where whoever takes from a work queue is asked to try one parked item of it again. */
export function retrySubject(stream: string, queue: string): string {
  return `retry.${token(stream)}.${token(queue)}`;
}
