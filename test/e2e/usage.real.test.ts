import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { filtersFor } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { emptyLedger } from '#src/kernel/domain/organization/ledger.ts';
import { eventually } from '#test/support/service/service.ts';
import { change, freshId } from '#test/support/events.fixture.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { errorOf, timestamp, type ApiClient } from '#test/support/clients/api-client.ts';
import { runHere } from '#test/support/clients/command-here.ts';
import { bss, json } from '#test/support/clients/command-line.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import { shareService, type SharedService } from '#test/support/shared/shared-service.ts';

/** What an organization used, who says so, and that it can be proved. */

const NO_EGRESS = { bytes_sent: 0, bytes_received: 0, refused: 0 };
let shared: SharedService;
let anybody: ApiClient;
let acme: string;
let api: ApiClient;
let log: ServiceLog;
/** In the order of their end; and when the second one had, by any clock of this machine. */
let ids: string[];
let between: string;

beforeAll(async () => {
  shared = await shareService();
  ({ log, anybody } = shared);
  ({ id: acme, owner: api } = await shared.organization('pro', 10_000));
  await log.grant(acme, 500);
  ids = [];
  for (const duration of ['1h', '2h', '3h', '4h', '5h']) {
    const { id } = (await api.create({ duration, session_name: `of ${duration}` })).body;
    for (const more of duration === '2h' ? ['10m', '20m'] : []) await api.extend(id, more);
    await api.stop(id);
    ids.push(id);
    await eventually(async () => (await usage()).totals.sessions === ids.length, 'it is settled');
    if (ids.length === 2) between = new Date(Date.now() + 5).toISOString();
    await eventually(() => !between || Date.now() > Date.parse(between) + 5, 'it is later');
  }
  await api.create({ duration: '10m', session_name: 'goes on' });
});
afterAll(() => shared?.[Symbol.asyncDispose]());

async function usage(query = '') {
  const reply = await api.get(`/api/usage${query}`);
  expect(errorOf(reply)).toBe('200');
  return reply.body;
}

function fail(text: string): never {
  throw new Error(text);
}

const here = (...args: string[]) => runHere({ DATA_DIR: shared.service.dataDir }, ...args);

const linesOf = (page: { lines: { session_id: string }[] }) =>
  page.lines.map((line) => line.session_id);

describe('GET /api/usage', () => {
  it('lists what was used, each line with the events behind it', async () => {
    const { lines, ...body } = await usage();
    expect(body).toEqual({
      organization_id: acme,
      from: timestamp,
      to: timestamp,
      totals: { sessions: 5, minutes: 5, credits: 5, egress: NO_EGRESS },
      open: { sessions: 1, credits_reserved: 10 },
      pagination: { limit: 20, next: null },
    });
    expect(body.from.slice(7)).toBe('-01T00:00:00.000Z');
    expect(linesOf({ lines })).toEqual(ids);
    expect(lines[1]).toEqual({
      session_id: ids[1],
      session_name: 'of 2h',
      user_id: 'owner-user',
      started_at: timestamp,
      billed_until: timestamp,
      ended_at: timestamp,
      ended_reason: 'user',
      minutes: 1,
      credits_reserved: 150,
      credits_used: 1,
      credits_refunded: 149,
      egress: null,
      events: expect.any(Array),
    });
    expect(lines[1].events.map(({ type }: { type: string }) => type)).toEqual([
      'session.requested',
      'session.activated',
      'session.extended',
      'session.extended',
      'session.stop-requested',
      'session.stopped',
      'ledger.slot-released',
    ]);
    const recorded = new Map<number, object>();
    for await (const { id, sequence, type } of readEvents(
      log.eventStore,
      filtersFor(acme, null),
      fail,
    ))
      recorded.set(sequence, { id, sequence, type });
    for (const event of lines[1].events) expect(recorded.get(event.sequence)).toEqual(event);
  });

  it('is paginated: each line is on one page', async () => {
    const seen: string[] = [];
    let after = '';
    for (let pages = 0; pages < 5; pages += 1) {
      const page = await usage(`?limit=2${after}`);
      expect(page.totals.sessions).toBe(5);
      seen.push(...linesOf(page));
      if (page.pagination.next === null) break;
      expect(page.lines).toHaveLength(2);
      after = `&after=${page.pagination.next}`;
    }
    expect(seen).toEqual(ids);
  });

  it('counts each line in one of two adjacent ranges', async () => {
    const [first, second] = [
      await usage(`?from=2026-01-01&to=${between}`),
      await usage(`?from=${between}`),
    ];
    expect([linesOf(first), linesOf(second)]).toEqual([ids.slice(0, 2), ids.slice(2)]);
    expect([first.totals.credits, second.totals.credits]).toEqual([2, 3]);
    expect([first.open.sessions, second.open.sessions]).toEqual([0, 1]);
    const none = await usage(`?from=${between}&to=${between}`);
    const nothing = { sessions: 0, minutes: 0, credits: 0, egress: NO_EGRESS };
    expect([none.totals, none.lines]).toEqual([nothing, []]);
    expect((await usage('?from=2025-01-01&to=2025-02-01')).totals.sessions).toBe(0);
  });

  it('is readable by every role, for the own organization only', async () => {
    const viewer = await shared.clientOf(acme, 'viewer');
    expect((await viewer.get('/api/usage')).body.totals.sessions).toBe(5);
    const { id: umbrella, owner: otherOwner } = await shared.organization();
    const { body } = await otherOwner.get(`/api/usage?from=${between}`);
    expect(body).toMatchObject({ organization_id: umbrella, totals: { sessions: 0 }, lines: [] });
    expect((await anybody.as(null).get('/api/usage')).status).toBe(401);
  });

  it('answers in UTC if asked with an offset', async () => {
    const { status, body } = await api.get(
      '/api/usage?from=2026-11-01T01:00%2B01:00&to=2026-11-20T09:30:00.1239-02:00',
    );
    expect([status, body.from, body.to]).toEqual([
      ...[200, '2026-11-01T00:00:00.000Z', '2026-11-20T11:30:00.123Z'],
    ]);
  });

  test.each([
    '?from=yesterday',
    '?from=2026-02-30',
    '?to=2026-11-20T25:00:00Z',
    '?from=2026-11-20T09:30:00%2B24:00',
    '?from=2026-11-20&to=2026-11-19',
    '?from=2020-01-01&to=2022-01-01',
    '?limit=0',
    '?limit=101',
    '?limit=ten',
    '?after=-1',
    '?after=x',
    '?until=2026-11-20',
    '?from=2026-11-20&from=2026-11-21',
  ])('refuses %s', async (query) => {
    expect(errorOf(await api.get(`/api/usage${query}`))).toBe('400 INVALID_REQUEST');
  });
});

describe('bss credits statement', () => {
  it('prints the same lines, derived from the event store, and that they agree', async () => {
    const statement = await json(shared.service, 'credits', 'statement', '--org', acme);
    const { lines } = await usage();
    expect(statement).toMatchObject({
      opening_balance: 0,
      granted: 10_500,
      sessions: 5,
      minutes: 5,
      credits_used: 5,
      egress: NO_EGRESS,
      closing_balance: 10_495,
      agrees: true,
      differences: [],
    });
    const itemized = (statement as { lines: { session_id: string; events: unknown }[] }).lines;
    expect(linesOf({ lines: itemized })).toEqual(ids);
    expect(itemized.map(({ events }) => events)).toEqual(
      lines.map(({ events }: { events: unknown }) => events),
    );
  });

  it('has balances that continue from range to range', async () => {
    const options = ['credits', 'statement', '--org', acme];
    const first = await json(shared.service, ...options, '--to', between);
    const second = await json(shared.service, ...options, '--from', between);
    expect(first).toMatchObject({ opening_balance: 0, credits_used: 2, closing_balance: 10_498 });
    expect(second).toMatchObject({ opening_balance: 10_498, granted: 0, credits_used: 3 });
    const { code, stdout } = await bss(shared.service, ...options);
    expect(code).toBe(0);
    expect(stdout).toContain('Balance 0, granted 10500, used 5 by 5 sessions: 10495.');
    expect(stdout).toContain('the same');
  });

  it('and `bss audit ledger` list differences and exit with 1', async () => {
    expect(await json(shared.service, 'audit', 'ledger')).toMatchObject({ agrees: true });
    // What no part of the service would write: a charge for a session that never was.
    const ledger = { kind: 'ledger', organizationId: 'forged' } as const;
    await log.register('forged', 'pro', 100);
    const last = await log.eventStore.readLast<'ledger'>(ledger);
    const data = { sessionId: 'ses_never', creditsUsed: 3, creditsRefunded: 0 };
    const forged = {
      aggregate: ledger,
      id: freshId('event'),
      type: 'ledger.slot-released',
      time: new Date().toISOString(),
      data,
      state: { ...emptyLedger, creditsGranted: 100, creditsAvailable: 97, creditsUsed: 3 },
      metadata: newMetadata('forger'),
    };
    await log.eventStore.append([change(last?.sequence ?? 0, forged)]);

    const statement = await here('credits', 'statement', '--org', 'forged');
    const isNever = expect.stringContaining('ses_never');
    expect(statement).toMatchObject({ differs: true, json: { differences: [isNever] } });
    const audit = await bss(shared.service, 'audit', 'ledger', '--json');
    expect(audit.code).toBe(1);
    const { agrees, organizations } = JSON.parse(audit.stdout);
    expect(agrees).toBe(false);
    const differing = organizations.filter((one: { agrees: boolean }) => !one.agrees);
    expect(differing).toMatchObject([{ organization_id: 'forged' }]);
    expect(differing[0].differences.join()).toContain('ses_never');
    // Each organization's books are its own.
    expect(await here('audit', 'ledger', '--org', acme)).toMatchObject({ json: { agrees: true } });
    expect(await here('audit', 'ledger', '--org', 'unknown')).toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});
