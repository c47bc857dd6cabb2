import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { allProjections } from '#projections/all-projections.ts';
import { projectionId } from '#projections/projection.ts';
import { EVENTS_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { families, type Family } from '#src/kernel/telemetry/metric-families.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { DEV_KEY, eventually, type RunningService } from '#test/support/service/service.ts';
import { scrape, type Scraped } from '#test/support/service/metrics-text.ts';
import {
  sendBytes,
  startTwoProcesses,
  WORKERS,
  type TwoProcesses,
} from '#test/support/service/two-processes.ts';

const TOKEN = 'token-of-the-scraper-0123456789';
const POOL_MAX = 4;

let service: TwoProcesses;
let front: RunningService;
let workersUrl = '';

beforeAll(async () => {
  const [port] = await freePorts(1);
  workersUrl = `http://127.0.0.1:${port}`;
  const pool = { POOL_MIN_IDLE: '1', POOL_MAX: `${POOL_MAX}` };
  const metrics = { METRICS_PORT: `${port}`, METRICS_TOKEN: TOKEN };
  service = await startTwoProcesses({}, { workers: { ...pool, ...metrics } });
  front = service.front;
});
afterAll(() => service?.[Symbol.asyncDispose]());

const atFront = () => scrape(front.apiUrl);
const atWorkers = () => scrape(workersUrl, TOKEN);

/** The actions so far, as the test knows them. */
const happened = { creates: 0, placed: 0, warm: 0, cold: 0 };
const created: string[] = [];

async function create(body: object = {}, headers: object = {}): Promise<{ cdp_url: string }> {
  const answer = await front.request('POST', '/api/sessions', body, headers);
  expect(answer.status).toBe(201);
  happened.creates += 1;
  const [, start] = /desc=(warm|cold)/.exec(answer.headers.get('server-timing') ?? '') ?? [];
  if (start === 'warm' || start === 'cold') {
    happened.placed += 1;
    happened[start] += 1;
  }
  created.push(answer.body.id);
  return answer.body;
}

const pool = (all: Scraped, state: string) => all.value('bss_pool_browsers', { state });
const phases = (all: Scraped, phase: string) =>
  all.value('bss_create_phase_seconds_count', { phase });
const starts = (all: Scraped, start: string) => all.value('bss_session_starts_total', { start });

test('creates are counted by warm or cold start, and timed by phase', async () => {
  await eventually(async () => pool(await atFront(), 'idle') === 1, 'a browser waits', 60_000);
  await create();
  await create({ locale: 'fr-FR' });
  while (happened.creates < POOL_MAX) await create();
  expect(happened.warm).toBeGreaterThan(0);
  expect(happened.cold).toBeGreaterThan(0);

  const all = await atFront();
  expect(phases(all, 'admission')).toBe(happened.creates);
  expect(phases(all, 'append')).toBe(happened.creates);
  expect(phases(all, 'placement')).toBe(happened.placed);
  expect(phases(all, 'launch')).toBe(happened.cold);
  await eventually(
    async () => {
      const theirs = await atWorkers();
      return starts(theirs, 'warm') === happened.warm && starts(theirs, 'cold') === happened.cold;
    },
    'the starts are counted at the provisioner',
    60_000,
  );
  expect((await front.request('POST', '/api/sessions', { duration: '1x' })).status).toBe(400);
  expect(phases(await atFront(), 'admission')).toBe(happened.creates);
});

test('gauges show the current pool and queue', async () => {
  await eventually(
    async () => {
      const all = await atFront();
      return pool(all, 'busy') === POOL_MAX && all.value('bss_pool_size') === POOL_MAX;
    },
    'all browsers are in use',
    60_000,
  );
  const full = await atFront();
  for (const state of ['idle', 'provisioning', 'launching', 'terminating'])
    expect(pool(full, state), state).toBe(0);
  expect(full.value('bss_queue_length')).toBe(0);
  expect(full.value('bss_queue_oldest_age_seconds')).toBe(0);

  const asynchronously = { prefer: 'respond-async' };
  const before = performance.now();
  await create({}, asynchronously);
  await create({}, asynchronously);
  const waiting = await eventually(
    async () => {
      const all = await atFront();
      return all.value('bss_queue_length') === 2 && all;
    },
    'two wait',
    60_000,
  );
  const age = waiting.value('bss_queue_oldest_age_seconds') ?? 0;
  expect(age).toBeGreaterThan(0);
  expect(age).toBeLessThan((performance.now() - before) / 1000 + 1);
  expect(pool(waiting, 'busy')).toBe(POOL_MAX);

  for (const id of created.slice(1, 3)) await front.request('DELETE', `/api/sessions/${id}`);
  await eventually(
    async () => {
      const all = await atFront();
      return all.value('bss_queue_length') === 0 && pool(all, 'busy') === POOL_MAX;
    },
    'they have their browsers',
    60_000,
  );
  await eventually(
    async () => {
      const theirs = await atWorkers();
      return (starts(theirs, 'warm') ?? 0) + (starts(theirs, 'cold') ?? 0) === happened.creates;
    },
    'theirs are counted, too',
    60_000,
  );
});

test('the sizes of the streams and the memory of Redis are those that both report', async () => {
  await using connection = await connectJetStream({ url: front.runtime.nats_url, name: 'test' });
  const { state } = await connection.jsm.streams.info(EVENTS_STREAM);
  const all = await atFront();
  const events = { stream: EVENTS_STREAM };
  // Events may be appended between the two looks; none is ever removed.
  const again = (await connection.jsm.streams.info(EVENTS_STREAM)).state;
  for (const [name, before, after] of [
    ['bss_stream_bytes', state.bytes, again.bytes],
    ['bss_stream_messages', state.messages, again.messages],
    ['bss_stream_subjects', state.num_subjects, again.num_subjects],
  ] as const) {
    expect(all.value(name, events), name).toBeGreaterThanOrEqual(before ?? Infinity);
    expect(all.value(name, events), name).toBeLessThanOrEqual(after ?? 0);
  }
  expect(all.value('bss_stream_subjects', events)).toBeGreaterThan(created.length);
  const streams = all.families
    .get('bss_stream_bytes')
    ?.samples.map(({ labels }) => labels['stream']);
  expect(streams).toEqual(
    expect.arrayContaining([EVENTS_STREAM, 'PUBLIC', 'TIMERS', 'ADVISORY', 'DEAD_LETTERS']),
  );
  expect(all.value('bss_redis_memory_bytes')).toBeGreaterThan(100_000);
  expect(all.value('bss_redis_memory_max_bytes')).toBe(0);
});

test('refusals are counted by error, in routes and in hooks', async () => {
  const refused = (all: Scraped) =>
    Object.fromEntries(
      (all.families.get('bss_refusals_total')?.samples ?? [])
        .filter(({ value }) => value > 0)
        .map(({ labels, value }) => [labels['error'], value]),
    );
  expect(refused(await atFront())).toEqual({ INVALID_DURATION: 1 });
  const none = { authorization: 'Bearer unknown' };
  for (let time = 0; time < 3; time += 1)
    await front.request('GET', '/api/status', undefined, none);
  await front.request('GET', '/api/nothing');
  await front.request('GET', '/api/sessions/ses_none');
  await front.request('PUT', '/api/sessions');
  await sendBytes(front.apiUrl, 'NO HTTP\r\n\r\n');
  expect(refused(await atFront())).toEqual({
    INVALID_DURATION: 1,
    UNAUTHORIZED: 3,
    NOT_FOUND: 1,
    SESSION_NOT_FOUND: 1,
    METHOD_NOT_ALLOWED: 1,
    INVALID_REQUEST: 1,
  });
});

test('a gateway counts its connections, their bytes, and refusals', async () => {
  const { body } = await front.request('GET', `/api/sessions/${created[0]}`);
  const bytes = { in: 0, out: 0 };
  for (let time = 1; time <= 2; time += 1) {
    const client = new WebSocket(body.cdp_url);
    await once(client, 'open');
    const { _socket: socket } = client as unknown as { _socket: Socket };
    const before = { in: socket.bytesWritten, out: socket.bytesRead };
    client.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
    await once(client, 'message');
    const open = await atFront();
    expect(open.value('bss_gateway_open_connections', { kind: 'cdp' })).toBe(1);
    expect(open.value('bss_gateway_open_connections', { kind: 'vnc' })).toBe(0);
    const closed = once(client, 'close');
    client.terminate();
    await closed;
    bytes.in += socket.bytesWritten - before.in;
    bytes.out += socket.bytesRead - before.out;
  }
  const wrongTicket = new WebSocket(`${body.cdp_url}x`);
  await once(wrongTicket, 'error');
  const all = await eventually(
    async () => {
      const found = await atFront();
      return found.value('bss_gateway_open_connections', { kind: 'cdp' }) === 0 && found;
    },
    'both are closed',
    60_000,
  );
  expect(all.value('bss_gateway_connections_total', { kind: 'cdp' })).toBe(2);
  expect(all.value('bss_gateway_connections_total', { kind: 'vnc' })).toBe(0);
  expect(all.value('bss_gateway_bytes_total', { direction: 'in' })).toBe(bytes.in);
  expect(all.value('bss_gateway_bytes_total', { direction: 'out' })).toBe(bytes.out);
  expect(all.value('bss_gateway_refusals_total', { status: '404' })).toBe(1);
  expect(phases(all, 'first_cdp')).toBe(1);
});

test('screenshots are timed where they are made: one for all who ask within a second', async () => {
  const url = `${front.apiUrl}/api/sessions/${created[0]}/screenshot?max_width=64`;
  const ask = () => fetch(url, { headers: { authorization: `Bearer ${DEV_KEY}` } });
  const replies = await Promise.all([ask(), ask(), ask()]);
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  const counted = (all: Scraped, outcome: string) =>
    all.value('bss_screenshot_seconds_count', { outcome }) ?? 0;
  const theirs = await atWorkers();
  expect([counted(theirs, 'made'), counted(theirs, 'failed')]).toEqual([1, 0]);
});

test('after traffic there are no leaks, no dead letters and no projection lag', async () => {
  const ids = allProjections.map((projection) => projectionId(projection));
  await eventually(
    async () => {
      const theirs = await atWorkers();
      const lag = (id: string) => theirs.value('bss_projection_lag_events', { projection: id });
      return ids.every((id) => lag(id) === 0);
    },
    'all is folded',
    60_000,
  );
  const theirs = await atWorkers();
  for (const projection of ids)
    expect(theirs.value('bss_projection_lag_seconds', { projection })).toBe(0);
  expect(theirs.value('bss_server_leaked_browsers')).toBe(0);
  expect(theirs.value('bss_server_leaked_sessions')).toBe(0);
  const launched = { outcome: 'launched' };
  const count = theirs.value('bss_browser_launch_seconds_count', launched) ?? 0;
  expect(count).toBeGreaterThanOrEqual(POOL_MAX);
  expect(theirs.value('bss_browser_launch_seconds_bucket', { ...launched, le: '+Inf' })).toBe(
    count,
  );
  const all = await atFront();
  for (const name of ['bss_leaked_browsers', 'bss_leaked_sessions', 'bss_overdue_sessions'])
    expect(all.value(name), name).toBe(0);
  for (const kind of ['projection', 'work_queue'])
    expect(all.value('bss_dead_letters', { kind }), kind).toBe(0);
  for (const part of ['event_log', 'read_model'])
    expect(all.value('bss_part_reachable', { part }), part).toBe(1);
});

test('each process exports the documented metrics of its roles, without ids as labels', async () => {
  const exported = [await atFront(), await atWorkers()] as const;
  const owners = [
    ['service', 'api', 'gateway', 'process'],
    ['projector', 'provisioner', 'process'],
  ];
  const projections = allProjections.map((projection) => projectionId(projection));
  for (const [at, { families: all, text }] of exported.entries()) {
    const own = Object.entries<Family>(families).filter(([, { of }]) =>
      of.some((owner) => owners[at]?.includes(owner)),
    );
    const names = [...all.keys()].filter((name) => name.startsWith('bss_'));
    expect(names.toSorted()).toEqual(own.map(([name]) => name).toSorted());
    for (const [name, { help, label }] of own) {
      const { help: helpText = '', samples = [] } = all.get(name) ?? {};
      expect(helpText).toBe(help);
      for (const { labels } of samples) {
        const { le: _bound, ...others } = labels;
        expect(Object.keys(others), name).toEqual(label === undefined ? [] : [label.name]);
        const value = others[label?.name ?? ''] ?? '';
        const values = label?.values ?? [''];
        if (name.startsWith('bss_projection_')) expect(projections).toContain(value);
        else if (typeof values !== 'string') expect(values).toContain(value);
      }
    }
    for (const id of created) expect(text).not.toContain(id);
    expect(text).not.toMatch(/(ses|srv|wl|key|evt)_[A-Za-z0-9]{8,}|"dev"/);
  }
  const roles = { roles: WORKERS };
  expect(exported[1].value('bss_process_info', roles)).toBe(1);
  expect(exported[1].value('bss_event_loop_delay_seconds', { stat: 'max' })).toBeGreaterThanOrEqual(
    0,
  );
  expect(exported[0].families.has('process_cpu_seconds_total')).toBe(true);
});

test('the API serves metrics to local clients, not to proxied requests', async () => {
  const ask = (headers = {}) => front.request('GET', '/metrics', undefined, headers);
  const { status, body } = await ask({ 'x-forwarded-for': '203.0.113.7' });
  expect({ status, body }).toMatchObject({ status: 404, body: { error: 'NOT_FOUND', code: 404 } });
  await expect(scrape(workersUrl)).rejects.toThrow('UNAUTHORIZED');
  await expect(scrape(front.apiUrl)).resolves.toBeDefined();
});
