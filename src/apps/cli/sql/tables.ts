import { aggregates } from '#events/events.ts';

/** A column of a table: its type, what it holds, and the expression that makes it. */
export type Column = { name: string; type: string; meaning: string; from: string };

export type TableName = 'events' | 'sessions' | 'ledger';

/**
 * A table of `bss sql`. `events` is made of the stored records, the others of `events`; `reads`
 * names the columns of `events` that they need, of one kind of aggregate.
 */
export type Table = {
  name: TableName;
  meaning: string;
  columns: readonly Column[];
  reads: { kind: string; columns: readonly string[] } | null;
};

const column = (name: string, type: string, from: string, meaning: string): Column => {
  return { name, type, meaning, from };
};

/** An attribute of CloudEvents, which stands in the headers in no promised order. */
function header(name: string): string {
  return `list_filter(headers, lambda pair: pair[1] = '${name}')[1][2]`;
}

const kinds = Object.entries(aggregates);
/** Whether a state has today's form: a reader of another form would find other fields. */
const isCurrent = kinds
  .map(([kind, { stateVersion }]) => `kind = '${kind}' AND state_version = ${stateVersion}`)
  .join(' OR ');

/** Expressions over the record: sequence, stored_at, headers, subject, parts, kind, data, state. */
const events: Table = {
  name: 'events',
  meaning: 'one row for each stored event',
  reads: null,
  columns: [
    column('sequence', 'BIGINT', 'sequence', 'position in the event store'),
    column('id', 'VARCHAR', header('ce-id'), 'id of the event'),
    column('type', 'VARCHAR', "kind || '.' || parts[-1]", 'as `session.requested`'),
    column('time', 'TIMESTAMP', header('ce-time'), 'when it was decided'),
    column('stored_at', 'TIMESTAMP', 'stored_at', 'when it was stored'),
    column(
      'organization_id',
      'VARCHAR',
      "CASE parts[1] WHEN 'evt' THEN parts[2] END",
      'null for servers and browsers',
    ),
    column(
      'aggregate_kind',
      'VARCHAR',
      'kind',
      '`session`, `profile`, `ledger`, `organization`, `server`, `workload`, `archive`',
    ),
    column(
      'aggregate_id',
      'VARCHAR',
      "CASE WHEN parts[1] = 'evt' AND kind NOT IN ('session', 'profile') THEN parts[2] ELSE " +
        'parts[-2] END',
      'id of that aggregate; of a ledger or organization, the organization’s',
    ),
    column(
      'actor_kind',
      'VARCHAR',
      `split_part(${header('ce-actor')}, ':', 1)`,
      '`user`, `operator` or `service`',
    ),
    column(
      'actor',
      'VARCHAR',
      `url_decode(split_part(${header('ce-actor')}, ':', 2))`,
      'user, key, operator or role that caused it',
    ),
    column(
      'via',
      'VARCHAR',
      header('ce-via'),
      'door of the request: `mcp`, `webdriver` or `one-call`; null: the REST API, or no request',
    ),
    column(
      'client',
      'VARCHAR',
      `url_decode(${header('ce-client')})`,
      'name that the client gives itself',
    ),
    column('command_id', 'VARCHAR', header('ce-commandid'), 'command that appended it'),
    column(
      'correlation_id',
      'VARCHAR',
      header('ce-correlationid'),
      'the same for all events of one request',
    ),
    column('causation_id', 'VARCHAR', header('ce-causationid'), 'id of the event that led to it'),
    column('data', 'JSON', 'data', 'JSON of what happened, see `events/README.md`'),
    column(
      'state',
      'JSON',
      `CASE WHEN ${isCurrent} THEN state END`,
      'JSON of the aggregate after it',
    ),
  ],
};

const seconds = (from: string, to: string) => `date_diff('millisecond', ${from}, ${to}) / 1000`;
const counted = (name: string, types: string, meaning: string) =>
  column(name, 'BIGINT', name, `${types} events: ${meaning}`);

/** Expressions over the newest event, its state as `s`, and counts of the session's events. */
const sessions: Table = {
  name: 'sessions',
  meaning: 'one row for each session, by its newest event; a value that it does not have is null',
  reads: {
    kind: 'session',
    columns: 'sequence type time organization_id aggregate_kind aggregate_id state'.split(' '),
  },
  columns: [
    column('id', 'VARCHAR', 'aggregate_id', 'id of the session'),
    column('organization_id', 'VARCHAR', 'organization_id', 'its organization'),
    column('name', 'VARCHAR', 's.name', 'its name'),
    column('description', 'VARCHAR', 's.description', 'free text'),
    column('user_id', 'VARCHAR', 's."userId"', 'user that created it'),
    column('labels', 'MAP(VARCHAR, VARCHAR)', 's.labels', "its labels, as `labels['team']`"),
    column(
      'status',
      'VARCHAR',
      's.status',
      '`creating`, `queued`, `active`, `stopping`, `stopped` or `failed`',
    ),
    column(
      'ended_reason',
      'VARCHAR',
      's."endedReason"',
      'why it ends or ended, as `user` or `browser_crashed`',
    ),
    column('created_at', 'TIMESTAMP', 's."createdAt"', 'when it was requested'),
    column('started_at', 'TIMESTAMP', 's."startedAt"', 'when it became active'),
    column('last_accessed_at', 'TIMESTAMP', 's."lastAccessedAt"', 'last access'),
    column('expires_at', 'TIMESTAMP', 's."expiresAt"', 'its expiry'),
    column('stop_requested_at', 'TIMESTAMP', 's."stopRequestedAt"', 'when its stop was requested'),
    column('ended_at', 'TIMESTAMP', 's."endedAt"', 'when it had ended'),
    column(
      'seconds_until_active',
      'DOUBLE',
      seconds('s."createdAt"', 's."startedAt"'),
      'from `created_at` to `started_at`',
    ),
    column(
      'seconds',
      'DOUBLE',
      seconds('s."startedAt"', 's."endedAt"'),
      'from `started_at` to `ended_at`',
    ),
    column('credits_reserved', 'BIGINT', 's."creditsReserved"', 'credits reserved in all'),
    column('credits_used', 'BIGINT', 's."creditsUsed"', 'credits charged at its end'),
    column(
      'server_id',
      'VARCHAR',
      'coalesce(s.workload."serverId", s.assignment."serverId")',
      'server of its browser',
    ),
    column(
      'workload_id',
      'VARCHAR',
      'coalesce(s.workload."workloadId", s.assignment."workloadId")',
      'its browser',
    ),
    column('idle_timeout_seconds', 'DOUBLE', 's."idleTimeoutMs" / 1000', 'its idle timeout'),
    counted('queued', '`session.queued`', 'it waited for a server'),
    counted('requeued', '`session.requeued`', 'a launch of its browser failed'),
    counted('extensions', '`session.extended`', 'its expiry was moved'),
    counted('accesses', '`session.accessed`', 'minutes with an access'),
    column('updated_at', 'TIMESTAMP', 'time', 'time of its newest event'),
    column('last_sequence', 'BIGINT', 'sequence', 'sequence of its newest event'),
  ],
};

/** Expressions over the event, its data as `d` and its state as `s`. */
const ledger: Table = {
  name: 'ledger',
  meaning:
    'one row for each change of an organization’s credits and slots, with the balance after it',
  reads: {
    kind: 'ledger',
    columns: ['sequence', 'type', 'time', 'organization_id', 'aggregate_kind', 'data', 'state'],
  },
  columns: [
    column('sequence', 'BIGINT', 'sequence', 'position in the event store'),
    column('time', 'TIMESTAMP', 'time', 'when it was decided'),
    column('organization_id', 'VARCHAR', 'organization_id', 'its organization'),
    column('type', 'VARCHAR', 'type', 'as `ledger.slot-reserved`'),
    column('session_id', 'VARCHAR', 'd."sessionId"', 'its session, if any'),
    column('credits', 'BIGINT', 'd.credits', 'credits granted or reserved by it'),
    column('credits_used', 'BIGINT', 'd."creditsUsed"', 'credits charged by it'),
    column('credits_refunded', 'BIGINT', 'd."creditsRefunded"', 'credits given back by it'),
    column('slots_in_use', 'BIGINT', 's."slotsInUse"', 'slots in use'),
    column('sessions_ended', 'BIGINT', 's."sessionsEnded"', 'sessions ended so far'),
    column('granted', 'BIGINT', 's."creditsGranted"', 'credits granted in all'),
    column('available', 'BIGINT', 's."creditsAvailable"', 'credits available'),
    column('reserved', 'BIGINT', 's."creditsReserved"', 'credits reserved'),
    column('used', 'BIGINT', 's."creditsUsed"', 'credits used in all'),
  ],
};

export const tables: readonly Table[] = [events, sessions, ledger];
export const eventColumns = events.columns;

/** Empty tables with their descriptions, which `duckdb_columns()` shows. */
export function createTables(): string[] {
  return tables.flatMap(({ name, meaning, columns }) => [
    `CREATE TABLE ${name} (${columns.map((one) => `"${one.name}" ${one.type}`).join(', ')})`,
    `COMMENT ON TABLE ${name} IS ${quote(meaning)}`,
    ...columns.map((one) => `COMMENT ON COLUMN ${name}."${one.name}" IS ${quote(one.meaning)}`),
  ]);
}

const STATE_OF_SESSION = {
  name: 'VARCHAR',
  description: 'VARCHAR',
  userId: 'VARCHAR',
  status: 'VARCHAR',
  labels: 'MAP(VARCHAR, VARCHAR)',
  endedReason: 'VARCHAR',
  idleTimeoutMs: 'BIGINT',
  createdAt: 'TIMESTAMP',
  startedAt: 'TIMESTAMP',
  lastAccessedAt: 'TIMESTAMP',
  expiresAt: 'TIMESTAMP',
  stopRequestedAt: 'TIMESTAMP',
  endedAt: 'TIMESTAMP',
  creditsReserved: 'BIGINT',
  creditsUsed: 'BIGINT',
  workload: { workloadId: 'VARCHAR', serverId: 'VARCHAR' },
  assignment: { workloadId: 'VARCHAR', serverId: 'VARCHAR' },
};
const COUNTS = {
  queued: 'session.queued',
  requeued: 'session.requeued',
  extensions: 'session.extended',
  accesses: 'session.accessed',
};

/**
 * Fills `sessions`. The newest events are found by their sequences alone: states in an aggregate
 * would be held in memory.
 */
export function fillSessions(): string {
  const counts = Object.entries(COUNTS).map(
    ([name, type]) => `count(*) FILTER (type = '${type}') AS ${name}`,
  );
  return `INSERT INTO sessions SELECT ${expressions(sessions)} FROM (
    SELECT events.*, counted.* EXCLUDE (newest), ${parsed('state', STATE_OF_SESSION)} AS s
    FROM events JOIN (
      SELECT max(sequence) AS newest, ${counts.join(', ')} FROM events
      WHERE aggregate_kind = 'session' GROUP BY organization_id, aggregate_id
    ) counted ON events.sequence = counted.newest)`;
}

export function fillLedger(): string {
  const data = {
    sessionId: 'VARCHAR',
    credits: 'BIGINT',
    creditsUsed: 'BIGINT',
    creditsRefunded: 'BIGINT',
  };
  const state = {
    slotsInUse: 'BIGINT',
    sessionsEnded: 'BIGINT',
    creditsGranted: 'BIGINT',
    creditsAvailable: 'BIGINT',
    creditsReserved: 'BIGINT',
    creditsUsed: 'BIGINT',
  };
  return `INSERT INTO ledger SELECT ${expressions(ledger)} FROM (
    SELECT *, ${parsed('data', data)} AS d, ${parsed('state', state)} AS s
    FROM events WHERE aggregate_kind = 'ledger')`;
}

function expressions({ columns }: Table): string {
  return columns.map(({ name, from }) => `${from} AS "${name}"`).join(', ');
}

function parsed(json: string, structure: object): string {
  return `from_json(${json}, ${quote(JSON.stringify(structure))})`;
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
