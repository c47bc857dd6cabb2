import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { isOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { openArchive } from '#src/features/archive/archive.ts';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { runQuery } from '#src/apps/cli/sql/run-query.ts';
import type { OpenArchive, Range, Sources } from '#src/apps/cli/sql/record-files.ts';
import { tables } from '#src/apps/cli/sql/tables.ts';
import { createLedgerAudit } from '#src/kernel/billing/ledger-audit.ts';
import { evolve } from '#src/kernel/domain/session/session.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { RawRecord } from '#src/kernel/event-store/raw-records.ts';
import { LOG, seal } from '#test/support/archive/archive.fixture.ts';
import { readText, sourceFiles } from '#test/support/sources/source-files.ts';
import {
  decidedOrganizations,
  decidedStore,
  eventsOf,
  rawRecordsOf,
  recordOf,
} from '#test/support/stores/decided-store.ts';

const eventStore = await decidedStore();
const events = await eventsOf(eventStore);
const records = events.map(recordOf);
const all: Range = { after: 0, upTo: records.length };
const logAlone: Sources = { archive: null, log: rawRecordsOf(records) };
const document = readText('src/apps/cli/sql.md');
const queries = [...document.matchAll(/^(.+):\n\n```sql\n([^`]+)```$/gm)].map(
  ([, title = '', query = '']) => ({ title, query }),
);

/** An archive of the first records, in segments of 60. */
async function archiveOf(sealed: readonly RawRecord[]): Promise<OpenArchive> {
  const files = createMemoryFiles();
  await seal(files, sealed, { recordsMax: 60 });
  return { files, archive: await openArchive(files, { log: LOG }) };
}

async function ask(query: string, sources = logAlone, range = all, limit = 10_000) {
  return runQuery(query, sources, { range, limit });
}

async function rowsOf(query: string, sources = logAlone, range = all) {
  return (await ask(query, sources, range)).rows;
}

/** The newest state of each session, folded from its events. */
async function foldedSessions(): Promise<SessionState[]> {
  const states = new Map<string, SessionState>();
  for (const event of events) {
    if (!isOf('session', event)) continue;
    const { id } = event.aggregate;
    states.set(id, evolve(states.get(id) ?? null, event, event.aggregate));
  }
  return [...states.values()];
}

/** A folder that a query left behind; other tests of this machine may run queries, too. */
async function leftFolders(): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => name.startsWith('bss-sql-'));
}
let before: string[] = [];
beforeAll(async () => {
  before = await leftFolders();
});
afterAll(async () => {
  expect((await leftFolders()).filter((name) => !before.includes(name))).toEqual([]);
});

describe('the documented queries', () => {
  it('are at least six', () => {
    expect(queries.length).toBeGreaterThanOrEqual(6);
  });

  test.each(queries)('$title: has rows', async ({ query }) => {
    expect((await rowsOf(query)).length).toBeGreaterThan(0);
  });

  it('give the same over archive and log as over the log alone', async () => {
    const end = Math.floor(records.length / 2);
    const archive = await archiveOf(records.slice(0, end));
    const log = rawRecordsOf(records.slice(end));
    const everything = tables.map(({ name }) => `select * from ${name} order by all`);
    for (const query of [...everything, ...queries.map(({ query }) => query)])
      expect(await ask(query, { archive, log })).toEqual(await ask(query));
  });
});

describe('the tables', () => {
  test.each(tables)('$name is documented column by column', ({ name, columns }) => {
    const section = document.split(`### ${name}\n`)[1]?.split('\n#')[0] ?? '';
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows).toEqual(columns.map(({ name, meaning }) => `| \`${name}\` | ${meaning} |`));
  });

  it('events has each stored event, as the codec decodes it', async () => {
    const { rows, columns } = await ask('from events order by sequence');
    const found = rows.map((row) =>
      Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])),
    );
    const expected = events.map((event) => {
      const { aggregate, metadata } = event;
      const organization = 'organizationId' in aggregate ? aggregate.organizationId : null;
      return {
        sequence: event.sequence,
        id: event.id,
        type: event.type,
        time: event.time,
        stored_at: event.time,
        organization_id: organization,
        aggregate_kind: aggregate.kind,
        aggregate_id: 'id' in aggregate ? aggregate.id : organization,
        actor_kind: metadata.actor.kind,
        actor: metadata.actor.id,
        via: metadata.actor.via ?? null,
        client: metadata.actor.client ?? null,
        command_id: metadata.commandId,
        correlation_id: metadata.correlationId,
        causation_id: metadata.causationId,
        data: event.data,
        state: event.state,
      };
    });
    expect(found).toEqual(expected);
  });

  it('sessions has what a fold of each session has', async () => {
    const rows = await rowsOf(
      `select id, organization_id, user_id, labels, status, ended_reason, created_at, started_at,
         ended_at, expires_at, last_accessed_at, credits_reserved, credits_used, server_id,
         seconds_until_active, seconds from sessions`,
    );
    const seconds = (from: string | null, to: string | null) =>
      from === null || to === null ? null : (Date.parse(to) - Date.parse(from)) / 1000;
    const folded = (await foldedSessions()).map((one) => [
      ...[one.id, one.organizationId, one.userId, one.labels, one.status, one.endedReason],
      ...[one.createdAt, one.startedAt, one.endedAt, one.expiresAt, one.lastAccessedAt],
      ...[one.creditsReserved, one.creditsUsed, one.workload?.serverId ?? null],
      ...[seconds(one.createdAt, one.startedAt), seconds(one.startedAt, one.endedAt)],
    ]);
    const byId = (one: readonly unknown[], other: readonly unknown[]) =>
      String(one[0]).localeCompare(String(other[0]));
    expect(rows.toSorted(byId)).toEqual(folded.toSorted(byId));
  });

  it('count sessions by reason as folds do', async () => {
    const counted = new Map<string, number>();
    for (const { endedAt, endedReason } of await foldedSessions())
      if (endedAt !== null) counted.set(endedReason, (counted.get(endedReason) ?? 0) + 1);
    const rows = await rowsOf(
      'select ended_reason, count(*) from sessions where ended_at is not null group by all',
    );
    expect(new Map(rows as [string, number][])).toEqual(counted);
    expect(counted.size).toBeGreaterThan(3);
  });

  it('have the balances of the ledgers, and the sums of the audit', async () => {
    const audit = createLedgerAudit();
    for (const event of events) audit.take(event);
    const rows = await rowsOf(
      `select organization_id, sum(credits_used), arg_max(used, sequence),
         arg_max(available, sequence) from ledger group by all order by 1`,
    );
    const expected = audit
      .report()
      .map(({ organizationId, bySessions: { creditsUsed, creditsAvailable } }) => {
        return [organizationId, creditsUsed, creditsUsed, creditsAvailable];
      });
    expect(rows).toEqual(expected.toSorted());
    for (const organizationId of decidedOrganizations) {
      const ledger = { kind: 'ledger', organizationId } as const;
      const { state } = await loadState<'ledger'>(eventStore, ledger);
      const row = rows.find(([id]) => id === organizationId);
      expect(row?.[2]).toBe(state?.creditsUsed);
      expect(state?.creditsUsed).toBeGreaterThan(0);
    }
  });

  it('have only the events of the range', async () => {
    const archive = await archiveOf(records.slice(0, 150));
    const sources = { archive, log: rawRecordsOf(records.slice(150)) };
    const range = { after: 70, upTo: 160 };
    expect(
      await rowsOf('select count(*), min(sequence), max(sequence) from events', sources, range),
    ).toEqual([[90, 71, 160]]);
  });

  it('show a state of another version as null, and count it', async () => {
    const foreign = records.map((record) => ({
      ...record,
      body: record.body.replace(/"stateVersion":\d+/, '"stateVersion":99'),
    }));
    const sources = { archive: null, log: rawRecordsOf(foreign) };
    const { rows, foreignStates } = await ask('select count(state) from events, ledger', sources);
    expect(rows).toEqual([[0]]);
    expect(foreignStates).toBeGreaterThan(0);
  });

  it('have a record whose body is not an object, without its data', async () => {
    const [first, ...others] = records;
    for (const body of ['3', '[1]', 'no JSON', '{"data":']) {
      const sources = {
        archive: null,
        log: rawRecordsOf([{ ...(first as RawRecord), body }, ...others]),
      };
      expect(
        await rowsOf('select sequence, data from events order by sequence limit 1', sources),
      ).toEqual([[1, null]]);
      expect(await rowsOf('select count(*) from events where data is null', sources)).toEqual([
        [1],
      ]);
    }
  });

  it('say how many events are in neither source', async () => {
    const archive = await archiveOf(records.slice(0, 100));
    const { missing } = await ask('select count(*) from events', {
      archive,
      log: rawRecordsOf(records.slice(130)),
    });
    expect(missing).toBe(30);
  });
});

describe('a query', () => {
  const secret = '/etc/passwd';
  test.each([
    ['select 1; select 2', /one query/],
    ['  -- nothing', /empty/],
    ["attach '/tmp/other.duckdb' as other", /only queries/],
    ["copy events to '/tmp/bss-sql-test.csv'", /only queries|Permission/],
    ['set threads = 1', /only queries/],
    ['set enable_external_access = true', /only queries/],
    ['install httpfs', /only queries/],
    ['load httpfs', /only queries/],
    ['insert into events (sequence) values (1)', /only queries/],
    ['with one as (select 1 as n) delete from events', /only queries/],
    ['drop table events', /only queries/],
    [`select * from read_text('${secret}')`, /Permission|disabled/],
    [`select * from read_csv('${secret}')`, /Permission|disabled/],
    [`select * from '${secret}.csv'`, /Permission|disabled|not exist/],
    ["select * from glob('/etc/*')", /Permission|disabled/],
    [`explain analyze select * from read_text('${secret}')`, /Permission|disabled/],
    [`from query('select * from read_text(''${secret}'')')`, /Permission|disabled/],
  ])('is refused: %s', async (query, why) => {
    await expect(ask(query)).rejects.toThrow(why);
  });

  test.each([
    ['selec 1', 'Parser Error: syntax error at or near "selec" (line 1, column 1, at "selec 1")'],
    ['select id,\n  nope from sessions', /^Binder Error: .*"nope".* \(line 2, column 3, at "nope/],
    [`select ${'1 + '.repeat(60)}nope`, /column 248, at "nope"\)$/],
    ['select type::int from events', /^Conversion Error: [^\n]*\(line 1, column /],
  ])('that fails is explained on one line, with the place: %s', async (query, message) => {
    const error = await ask(query).catch((error: unknown) => error as Error);
    expect(error).toMatchObject({ name: 'QueryRefused' });
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('\n');
  });

  it('may describe, summarize and explain', async () => {
    expect((await rowsOf('describe sessions')).length).toBeGreaterThan(20);
    expect((await rowsOf('summarize ledger')).length).toBeGreaterThan(10);
    expect(JSON.stringify(await rowsOf('explain select type from events'))).toContain('SEQ_SCAN');
    expect(await rowsOf('show tables')).toEqual([['events'], ['ledger'], ['sessions']]);
  });

  it('reads whole rows wherever it names them', async () => {
    const [[text]] = (await rowsOf(
      "select to_json(e)::varchar from events e where type = 'session.stopped' limit 1",
    )) as [[string]];
    expect(JSON.parse(text)).toMatchObject({ data: { reason: 'user' }, actor_kind: 'service' });
    const filtered = "select count(*) from events where state ->> '$.status' = 'stopped'";
    expect((await rowsOf(filtered))[0]?.[0]).toBeGreaterThan(5);
  });

  it('returns at most as many rows as asked for', async () => {
    const { rows, isCut } = await ask('from events', logAlone, all, 7);
    expect([rows.length, isCut]).toEqual([7, true]);
    const whole = await ask('from sessions', logAlone, all, 36);
    expect([whole.rows.length, whole.isCut]).toEqual([36, false]);
  });

  it('loads nothing that it does not name', async () => {
    expect((await ask('select 1')).loaded).toBe(0);
    const refuses: Sources = {
      archive: null,
      log: { read: () => expect.unreachable('the log was read') },
    };
    expect(await rowsOf('select 40 + 2', refuses)).toEqual([[42]]);
  });

  it('is not answered from a segment that was altered', async () => {
    const archive = await archiveOf(records);
    const name = '000002.ndjson.zst';
    const data = await archive.files.read(name);
    data[100] = (data[100] ?? 0) ^ 1;
    await archive.files.write(name, data);
    await expect(ask('from events', { archive, log: rawRecordsOf([]) })).rejects.toThrow(
      'segment 2: the data is not what was sealed',
    );
  });

  it('ends when it is interrupted', async () => {
    const stop = new AbortController();
    const endless =
      'select count(*) from range(10000000000) a, range(1000000) b, (select 1 from events)';
    const running = runQuery(endless, logAlone, {
      range: all,
      limit: 1,
      signal: stop.signal,
      onLoaded: () => void setTimeout(() => stop.abort(new Error('interrupted')), 200),
    });
    await expect(running).rejects.toThrow('interrupted');
  });
});

it('no file imports DuckDB when it is loaded', () => {
  const users = sourceFiles().filter(({ path, text }) => {
    return path.startsWith('src/') && /from '@duckdb/.test(text.replaceAll(/import type .*/g, ''));
  });
  expect(users.map(({ path }) => path)).toEqual([]);
  expect(readText('src/apps/cli/sql/database.ts')).toContain("() => import('@duckdb/node-api')");
});
