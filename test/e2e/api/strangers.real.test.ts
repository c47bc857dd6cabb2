import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { OpenApiDocument } from '#src/roles/api/docs/openapi-document.ts';
import { newId } from '#src/kernel/ids.ts';
import { createTickets, holderOf } from '#src/roles/gateway/access/ticket.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { connectApi, type ApiClient } from '#test/support/clients/api-client.ts';
import { openRaw, rawRequest, type RawConnection } from '#test/support/clients/raw-http.ts';
import { MASTER_KEY } from '#test/support/service/two-processes.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/** To another organization, a session is byte for byte like an unknown one. */

const POOL_MAX = 3;

let service: RunningService;
let log: ServiceLog;
let owner: ApiClient;
let strangersKey: string;
/** Sessions of acme by status: another organization must not be able to distinguish them either. */
const sessions: Record<string, string> = {};
/** Operations on one session: method and path with `{id}` in it. */
let routes: { method: string; path: string }[];

beforeAll(async () => {
  service = await startService({
    TIERS: JSON.stringify({ pro: { requests_per_minute: 1_000_000 } }),
    POOL_MAX: `${POOL_MAX}`,
    POOL_MIN_IDLE: '1',
    QUEUE_AFTER: '50ms',
    MASTER_KEY,
  });
  const anybody = await connectApi(service.apiUrl);
  log = await openLog(service);
  await log.register('acme', 'pro', 10_000);
  await log.register('umbrella', 'pro', 10_000);
  owner = anybody.as(await log.issueKey('acme', 'owner', anybody));
  strangersKey = await log.issueKey('umbrella', 'owner', anybody);
  sessions['stopped'] = (await owner.create({}, { 'idempotency-key': 'acme-1' })).body.id;
  await owner.stop(sessions['stopped'] ?? '');
  sessions['active'] = (await owner.create({ labels: { secret: 'plan' } })).body.id;
  sessions['queued'] = await firstQueued();
  const document = (await anybody.get('/api/openapi.json')).body as OpenApiDocument;
  routes = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/sessions/{id}'))
    .flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => ({ method: method.toUpperCase(), path })),
    );
});
afterAll(async () => {
  await log?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

/** Creates sessions until no browser is free, and none is being launched for the last one. */
async function firstQueued(): Promise<string> {
  return eventually(async () => {
    const { id } = (await owner.create({}, { prefer: 'respond-async' })).body;
    const statusOf = async () => (await owner.get(`/api/sessions/${id}`)).body.status;
    await eventually(async () => (await statusOf()) !== 'creating', `${id} is no longer creating`);
    const { autoscaler } = (await owner.get('/api/status')).body;
    const isFull = autoscaler?.pool_status.busy === POOL_MAX;
    return isFull && (await statusOf()) === 'queued' && id;
  }, 'one is queued');
}

/** All bytes except the id and those that change with time: date, place in the window. */
function comparable(answer: string, id: string): string {
  return answer
    .replaceAll(id, '{id}')
    .replace(/^date: .*$/im, 'date: {date}')
    .replace(/^x-ratelimit-(remaining|reset): \d+$/gim, 'x-ratelimit-$1: {n}');
}

async function answerTo(
  { ask }: RawConnection,
  { method, path }: Route,
  id: string,
  sent: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<string> {
  const request = rawRequest(method, path.replace('{id}', id), { key: strangersKey, ...sent });
  return comparable(await ask(request), id);
}

type Route = { method: string; path: string };

function takesBody({ method }: Route): boolean {
  return method === 'POST' || method === 'PATCH';
}

/** Stands for the route's own. */
const VALID = { valid: true };

function validBodyOf({ method, path }: Route): object {
  if (method === 'PATCH') return { description: 'Another one.' };
  if (path.endsWith('/handoffs')) return { instructions: 'Sign in.' };
  if (path.endsWith('/complete')) return { success: true };
  if (path.endsWith('/shares')) return { mode: 'view', expires_in: '1h' };
  return { duration: '1h' };
}

describe('the API', () => {
  const requests: [what: string, sent: { body?: unknown; headers?: Record<string, string> }][] = [
    ['with a valid body', { body: VALID }],
    ['without a body', {}],
    ['with a wrong body', { body: { duration: '25h' } }],
    ['with an unknown field', { body: { duration: '1h', x: 1 } }],
    ['with a key that its owner used', { headers: { 'idempotency-key': 'acme-1' } }],
    ['of a browser that reconnects', { headers: { 'last-event-id': '1' } }],
  ];
  test.each(requests)('reveals nothing by a request %s', async (_, sent) => {
    expect(routes.length).toBeGreaterThan(3);
    using connection = await openRaw(service.apiUrl);
    for (const route of routes) {
      // The API reads and refuses a GET or DELETE with a body before it looks for the session.
      const body = sent.body === VALID ? validBodyOf(route) : sent.body;
      const own = { ...sent, body: takesBody(route) ? body : undefined };
      const never = await answerTo(connection, route, newId('ses'), own);
      expect(never).toMatch(/^HTTP\/1\.1 40[04] /);
      for (const [at, id] of Object.entries(sessions))
        expect([route, at, await answerTo(connection, route, id, own)]).toEqual([route, at, never]);
    }
  });

  it('answers SESSION_NOT_FOUND on every route', async () => {
    using connection = await openRaw(service.apiUrl);
    for (const route of routes) {
      const own = takesBody(route) ? { body: validBodyOf(route) } : {};
      const answer = await answerTo(connection, route, sessions['active'] ?? '', own);
      expect(answer).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
      const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
      expect(JSON.parse(body)).toEqual({
        error: 'SESSION_NOT_FOUND',
        message: 'There is no session with this id.',
        code: 404,
        context: { session_id: '{id}' },
      });
    }
  });

  it('the sessions are unchanged', async () => {
    const before = await lastOf(log.eventStore, ['evt.acme.>']);
    using connection = await openRaw(service.apiUrl);
    for (const id of Object.values(sessions))
      for (const route of routes) await answerTo(connection, route, id);
    expect(await lastOf(log.eventStore, ['evt.acme.>'])).toBe(before);
    expect((await owner.get(`/api/sessions/${sessions['active']}`)).body.status).toBe('active');
    expect((await owner.get(`/api/sessions/${sessions['queued']}`)).body.status).toBe('queued');
  });
});

describe('the gateway', () => {
  const UPGRADE = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  /** The places of a ticket in a path, for CDP or for the screen. */
  const places = [
    { kind: 'cdp', path: '/devtools/browser/{t}', headers: UPGRADE },
    { kind: 'cdp', path: '/devtools/page/{t}/A1', headers: UPGRADE },
    { kind: 'vnc', path: '/vnc/{t}/websockify', headers: UPGRADE },
    { kind: 'cdp', path: '/devtools/browser/{t}', headers: {} },
    { kind: 'cdp', path: '/devtools/{t}/json/version', headers: {} },
    { kind: 'cdp', path: '/devtools/browser/{t}/json/list', headers: {} },
    { kind: 'vnc', path: '/vnc/{t}/', headers: {} },
    { kind: 'vnc', path: '/vnc/{t}/state', headers: {} },
    { kind: 'vnc', path: '/vnc/{t}/websockify', headers: {} },
  ] as const;

  it.each(places)('gives the same answer to every invalid ticket: $kind $path', async (place) => {
    const ours = createTickets(Buffer.from(MASTER_KEY));
    const others = createTickets(Buffer.from('another-master-key-of-another-service'));
    const active = sessions['active'] ?? '';
    const other = place.kind === 'cdp' ? 'vnc' : 'cdp';
    const right = ours.issue(place.kind, 'acme', active);
    const answers = [];
    for (const ticket of [
      'never-was-a-ticket-at-all-0123456789',
      // A client that could issue tickets for its own organization would reach only its own
      // sessions.
      ours.issue(place.kind, 'umbrella', active),
      ours.issue(place.kind, 'umbrella', newId('ses')),
      ours.issue(place.kind, 'acme', newId('ses')),
      ours.issue(other, 'acme', active),
      ours.issue(place.kind, 'acme', active, { epoch: 0, holder: holderOf('ab'.repeat(32)) }),
      others.issue(place.kind, 'acme', active),
      right.slice(0, -1),
      `${right}A`,
      `${right.startsWith('A') ? 'B' : 'A'}${right.slice(1)}`,
    ]) {
      using connection = await openRaw(service.runtime.gateway_ws_url ?? '');
      const request = rawRequest('GET', place.path.replace('{t}', ticket), {
        headers: place.headers,
      });
      answers.push(comparable(await connection.ask(request), ticket));
    }
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(answers[0]).toContain('"error":"NOT_FOUND"');
    using connection = await openRaw(service.runtime.gateway_ws_url ?? '');
    const path = place.path.replace('{t}', right);
    const answer = await connection.ask(rawRequest('GET', path, { headers: place.headers }));
    if (!path.includes('/page/')) expect(answer).not.toMatch(/^HTTP\/1\.1 404 /);
  });
});
