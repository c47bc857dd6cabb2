import { describe, expect, it, test } from 'vitest';
import type { ServerEvent } from '#events/server.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { handleServerCommand } from '#src/commands/operator/servers.ts';
import { exampleEvents } from '#test/support/events/example-lives.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

const TOKEN = 'operator-4711-token';
const AS_OPERATOR = { authorization: `Bearer ${TOKEN}` };

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp(undefined, undefined, undefined, TOKEN);
});
afterAll(() => app?.[Symbol.asyncDispose]());

const get = (path: string) => app.request('GET', path, undefined, AS_OPERATOR);
const post = (path: string, body?: object) => app.request('POST', path, body, AS_OPERATOR);

describe('the operator’s credential', () => {
  it('is OPERATOR_TOKEN', async () => {
    expect(await get('/api/operator')).toEqual({ status: 200, body: { operator: true } });
  });

  test.each(['Bearer wrong', 'Bearer ', 'Basic abc', ''])('is not %j', async (authorization) => {
    const { status, body } = await app.request('GET', '/api/operator/organizations', undefined, {
      authorization,
    });
    expect([status, body.error]).toEqual([401, 'UNAUTHORIZED']);
  });

  it('does not exist without OPERATOR_TOKEN: paths and methods are unknown', async () => {
    await using without = await startApp();
    for (const [method, path] of [
      ['GET', '/api/operator'],
      ['GET', '/api/operator/servers'],
      ['POST', '/api/operator/audits'],
      ['DELETE', '/api/operator/audits'],
    ] as const) {
      const { status, body } = await without.request(method, path, undefined, AS_OPERATOR);
      expect([path, status, body.error]).toEqual([path, 404, 'NOT_FOUND']);
    }
  });

  it('passes whatever others try: too many failed attempts of its address are refused alone', async () => {
    const limits = {
      requestsPerMinute: 5,
      concurrentSessions: 100,
      credits: 1_000,
      queueWeight: 1,
    };
    await using strict = await startApp(undefined, { limits }, undefined, TOKEN);
    // A minute begins: none ends between the attempts.
    strict.pass(60_000 - (strict.now() % 60_000));
    const ask = (authorization: string) =>
      strict.request('GET', '/api/operator', undefined, { authorization });
    for (let n = 0; n < 20; n += 1) expect((await ask(`Bearer ${TOKEN}`)).status).toBe(200);
    for (let n = 0; n < 5; n += 1) expect((await ask('Bearer wrong')).status).toBe(401);
    expect((await ask('Bearer wrong')).body.error).toBe('RATE_LIMIT_EXCEEDED');
    expect((await ask(`Bearer ${TOKEN}`)).status).toBe(200);
    expect((await ask('Bearer wrong')).status).toBe(429);
    strict.pass(60_000);
    expect((await ask('Bearer wrong')).status).toBe(401);
  });
});

test('the operator may ask where strangers may not', async () => {
  const limits = { requestsPerMinute: 0, concurrentSessions: 1, credits: 1, queueWeight: 1 };
  await using closed = await startApp(undefined, { limits }, undefined, TOKEN);
  const ask = (authorization: string) =>
    closed.request('GET', '/api/operator', undefined, { authorization });
  expect((await ask('Bearer wrong')).status).toBe(429);
  expect((await ask(`Bearer ${TOKEN}`)).status).toBe(200);
});

test('organizations come by id, page by page', async () => {
  const { body } = await get('/api/operator/organizations?limit=1');
  expect(body).toMatchObject({
    organizations: [{ id: 'acme', tier: 'max', credits_available: 10_000, open_sessions: 0 }],
    next: null,
  });
  const { body: none } = await get('/api/operator/organizations?after=acme');
  expect(none).toEqual({ organizations: [], next: null });
});

test.each([
  ['ACM', ['acme']],
  ['cme', ['acme']],
  [' acme ', ['acme']],
  ['', ['acme']],
  ['nothing', []],
])('organizations whose id or name contains %j are found', async (q, ids) => {
  const { body } = await get(`/api/operator/organizations?q=${encodeURIComponent(q)}`);
  expect(body.organizations.map(({ id }: { id: string }) => id)).toEqual(ids);
});

test('a server is drained and undrained, by the operator', async () => {
  const { body } = await get('/api/operator/servers');
  expect(body.servers).toMatchObject([{ id: 'srv_1', status: 'live', pool_max: 20 }]);
  const { body: drained } = await post('/api/operator/servers/srv_1/drain');
  expect(drained).toEqual({ id: 'srv_1', status: 'draining' });
  const { body: again } = await post('/api/operator/servers/srv_1/undrain');
  expect(again).toEqual({ id: 'srv_1', status: 'live' });
  for (const id of ['srv_2', '%2e%2e'])
    expect((await post(`/api/operator/servers/${id}/drain`)).status).toBe(404);
});

test('the pool over time ends with the pool of now', async () => {
  const { body: created } = await app.request('POST', '/api/sessions', { duration: '10m' });
  expect(created.status).toBe('active');
  const settled = async () => {
    const { body: status } = await app.request('GET', '/api/status');
    const { pool_status: pool } = status.autoscaler;
    return pool.busy === 1 && pool.idle >= 2 && pool.launching + pool.provisioning === 0;
  };
  await eventually(settled, 'the pool has settled');
  app.pass(10_000);
  for (const series of [
    await get('/api/operator/pool?step=30'),
    await app.request('GET', '/api/pool?step=30'),
  ]) {
    expect(series.status).toBe(200);
    const { points, step_ms } = series.body;
    expect(step_ms).toBe(30_000);
    expect(points.length).toBe(121);
    expect(points[0]).toMatchObject({ total: 0, idle: 0, busy: 0, waiting: 0 });
    const { body: status } = await app.request('GET', '/api/status');
    expect(points.at(-1)).toMatchObject({ ...status.autoscaler.pool_status, waiting: 0 });
  }
});

test.each([
  ['step=0', 'step'],
  ['step=1.5', 'step'],
  ['step=1', 'step'],
  ['from=yesterday', 'from'],
  ['to=2999-01-01T00:00:00.000Z', 'to'],
  ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', 'from'],
  ['from=2020-01-01T00:00:00Z&to=2020-03-01T00:00:00Z', 'from'],
])('the pool over time refuses %s', async (query, field) => {
  const { status, body } = await app.request('GET', `/api/pool?${query}`);
  expect([status, body.error]).toEqual([400, 'INVALID_REQUEST']);
  expect(Object.keys(body.context)).toContain(field);
});

test('decisions come newest first, page by page, with their inputs', async () => {
  const { data } = exampleEvents.get('server.pool-resized') ?? {};
  const resized = data as Extract<ServerEvent, { type: 'server.pool-resized' }>['data'];
  for (const target of [3, 4, 5]) {
    const decision = { ...resized.decision, target };
    const command = { type: 'ResizePool', ...resized, decision } as const;
    await handleServerCommand(app.context, 'srv_1', command, newMetadata('test'));
  }
  const all = [];
  let before = '';
  do {
    const { body } = await get(`/api/operator/pool/decisions?limit=1${before}`);
    all.push(...body.decisions);
    before = body.next === null ? '' : `&before=${body.next}`;
  } while (before !== '');
  expect(all.map(({ decision }) => decision.target).slice(0, 3)).toEqual([5, 4, 3]);
  const sequences = all.map(({ sequence }) => sequence);
  expect(sequences).toEqual(sequences.toSorted((a, b) => b - a));
  expect(all[0]).toMatchObject({ server_id: 'srv_1', inputs: resized.inputs });
  const { body: whole } = await get('/api/operator/pool/decisions?server=srv_1');
  expect(whole.decisions).toEqual(all);
  expect((await get('/api/operator/pool/decisions?server=srv_9')).body.decisions).toEqual([]);
  const { body: then } = await get(`/api/operator/pool/decisions?as_of=${all[0].time}`);
  expect(then.decisions.at(-1)).toEqual(all.at(-1));
  const { body: early } = await get('/api/operator/pool/decisions?as_of=2020-01-01T00:00:00.000Z');
  expect(early).toEqual({ decisions: [], next: null });
  const { status } = await get('/api/operator/pool/decisions?as_of=2999-01-01T00:00:00.000Z');
  expect(status).toBe(400);
});

describe('the events of all organizations and of the fleet', () => {
  type Listed = {
    sequence: number;
    type: string;
    time: string;
    kind: string;
    organization_id: string | null;
    aggregate_id: string;
  };
  /** @param upTo the last sequence, so that what happens meanwhile is left out */
  async function allPages(query: string, upTo?: number): Promise<Listed[]> {
    const all = [];
    let before: string | null = upTo === undefined ? '' : `&before=${upTo + 1}`;
    while (before !== null) {
      const { status, body } = await get(`/api/operator/events?${query}${before}`);
      expect(status).toBe(200);
      all.push(...body.events);
      before = body.next === null ? null : `&before=${body.next}`;
    }
    return all;
  }

  it('come newest first, page by page, as sentences without their data', async () => {
    const { body: created } = await app.request('POST', '/api/sessions', { duration: '10m' });
    const last = await app.context.eventStore.lastSequence();
    const all = await allPages('limit=7', last);
    expect(all.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: last }, (_, at) => last - at),
    );
    const requested = all.find(({ type }) => type === 'session.requested');
    expect(requested).toEqual({
      ...{ sequence: expect.any(Number), id: expect.any(String), time: expect.any(String) },
      ...{ type: 'session.requested', kind: 'session', organization_id: 'acme' },
      ...{ aggregate_id: created.id, actor: expect.objectContaining({ kind: 'user' }) },
      sentence: expect.stringContaining('was requested until'),
    });
  });

  it.each([
    ['kind=session', ({ kind }: Listed) => kind === 'session'],
    ['kind=workload', ({ kind }: Listed) => kind === 'workload'],
    ['kind=ledger&organization=acme', ({ kind }: Listed) => kind === 'ledger'],
    ['kind=server&id=srv_1', ({ kind }: Listed) => kind === 'server'],
    ['organization=acme', ({ organization_id: id }: Listed) => id === 'acme'],
    ['kind=organization', ({ kind }: Listed) => kind === 'organization'],
  ])('are selected by %s', async (query, isWanted) => {
    const last = await app.context.eventStore.lastSequence();
    const wanted = (await allPages('', last)).filter(isWanted);
    expect(wanted).not.toEqual([]);
    expect(await allPages(query, last)).toEqual(wanted);
  });

  it.each([
    'organization=other',
    'kind=session&organization=other',
    'kind=ledger&organization=other',
    'kind=server&id=srv_9',
  ])('are none by %s, which selects nothing that is', async (query) => {
    expect(await allPages(query)).toEqual([]);
  });

  it('are those of one session, with its id', async () => {
    const { body: created } = await app.request('POST', '/api/sessions', { duration: '10m' });
    const last = await app.context.eventStore.lastSequence();
    const all = await allPages('kind=session', last);
    const own = all.filter(({ aggregate_id: id }) => id === created.id);
    expect(own.map(({ type }) => type)).toContain('session.requested');
    expect(await allPages(`kind=session&id=${created.id}`, last)).toEqual(own);
  });

  it('end at a moment', async () => {
    const { body: created } = await app.request('POST', '/api/sessions', { duration: '10m' });
    const own = (more = '') => allPages(`kind=session&id=${created.id}${more}`);
    await eventually(
      async () => (await own()).some(({ type }) => type === 'session.activated'),
      'the session is active',
    );
    const then = await own();
    app.pass(10_000);
    await app.request('DELETE', `/api/sessions/${created.id}`);
    expect((await own()).length).toBeGreaterThan(then.length);
    const moment = `&as_of=${encodeURIComponent(then[0]?.time ?? '')}`;
    expect(then.length).toBeGreaterThan(1);
    expect(await own(moment)).toEqual(then);
    expect(await own(`${moment}&limit=1`)).toEqual(then);
    expect(await allPages('as_of=2020-01-01T00:00:00.000Z')).toEqual([]);
  });

  it.each(['kind=browser', 'id=srv_1', 'kind=ledger&id=acme', 'kind=server&organization=acme'])(
    'refuse %s, which selects nothing that can be',
    async (query) => {
      const { status, body } = await get(`/api/operator/events?${query}`);
      expect([status, body.error]).toEqual([400, 'INVALID_REQUEST']);
    },
  );
});

test('read models are rebuilt one at a time, and tell how far they are', async () => {
  const { body } = await get('/api/operator/read-models');
  const names = body.read_models.map(({ name }: { name: string }) => name);
  expect(names).toEqual([
    'organization-sessions',
    'profiles',
    'servers',
    'session-view',
    'workloads',
  ]);
  expect(body.rebuild).toBe(null);
  expect((await post('/api/operator/read-models/nothing/rebuild')).status).toBe(404);
  const [first, second] = await Promise.all([
    post('/api/operator/read-models/workloads/rebuild'),
    post('/api/operator/read-models/servers/rebuild'),
  ]);
  expect([first.status, second.status]).toEqual([202, 503]);
  expect(first.body).toMatchObject({ name: 'workloads', state: 'running' });
  const isDone = async () => (await get('/api/operator/read-models')).body.rebuild.state === 'done';
  await eventually(isDone, 'the read model is rebuilt');
});

test('a dead letter is retried, and skipped with a reason', async () => {
  const { deadLetters } = app;
  const letter = { by: 'gone:v1', sequence: 1, subject: 'a.subject', reason: 'cannot be read' };
  await deadLetters.add(letter);
  await deadLetters.add({ ...letter, sequence: 2 });
  const { body } = await get('/api/operator/dead-letters?limit=1');
  expect(body).toMatchObject({
    total: 2,
    next: '1',
    dead_letters: [
      { id: '1.gone:v1', failed_by: 'gone:v1', reason: 'cannot be read', attempts: 1 },
    ],
  });
  const { body: retried } = await post('/api/operator/dead-letters/1.gone:v1/retry');
  expect(retried).toMatchObject({ outcome: 'mended', failure: null });
  expect((await post('/api/operator/dead-letters/2.gone:v1/skip', {})).status).toBe(400);
  const { body: skipped } = await post('/api/operator/dead-letters/2.gone:v1/skip', {
    reason: 'a test event',
    operator: 'ada',
  });
  expect(skipped).toMatchObject({ id: '2.gone:v1', outcome: 'skipped' });
  expect((await get('/api/operator/dead-letters')).body.total).toBe(0);
  expect((await post('/api/operator/dead-letters/2.gone:v1/retry')).status).toBe(404);
});

test('a retry that fails is counted, and each decision has a line with its actor', async () => {
  const { deadLetters, decided } = app;
  const letter = { by: 'servers:v2', sequence: 999_999, subject: 'fleet.server.srv_1.joined' };
  await deadLetters.add({ ...letter, reason: 'cannot be read' });
  const path = '/api/operator/dead-letters/999999.servers:v2';
  const { body: retried } = await post(`${path}/retry`);
  expect(retried).toMatchObject({ outcome: 'fails', failure: 'it cannot be read' });
  const { body } = await get('/api/operator/dead-letters');
  expect(body.dead_letters).toMatchObject([{ id: '999999.servers:v2', attempts: 2 }]);
  await post(`${path}/skip`, { reason: 'a test event', operator: 'ada' });
  const about = { id: '999999.servers:v2' };
  expect(decided().slice(-2)).toMatchObject([
    { ...about, msg: 'dead letter retried', actor: 'operator:api', outcome: 'fails' },
    { ...about, msg: 'dead letter skipped', actor: 'operator:ada', skipped_for: 'a test event' },
  ]);
});

test('an audit compares the ledgers with the sessions', async () => {
  expect((await get('/api/operator/audits')).body).toEqual({ ledgers: null, archive: null });
  expect((await post('/api/operator/audits')).status).toBe(202);
  const done = async () => (await get('/api/operator/audits')).body.ledgers.state === 'done';
  await eventually(done, 'the audit has ended');
  const { ledgers, archive } = (await get('/api/operator/audits')).body;
  const nothing = { agrees: true, segments: 0, records: 0, signer: null, findings: [] };
  expect(archive).toMatchObject({ state: 'done', failure: null, result: nothing });
  expect(ledgers.result).toMatchObject({
    agrees: true,
    unreadable: 0,
    organizations: [{ organization_id: 'acme', agrees: true, differences: [] }],
  });
});
