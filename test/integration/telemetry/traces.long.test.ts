import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { eventually, type RunningService } from '#test/support/service/service.ts';
import {
  startCollector,
  type CollectedSpan,
  type Collector,
} from '#test/support/servers/trace-collector.ts';
import {
  FRONT,
  startTwoProcesses,
  WORKERS,
  type TwoProcesses,
} from '#test/support/service/two-processes.ts';

let collector: Collector;
let service: TwoProcesses;
let workers: RunningService;
let front: RunningService;

beforeAll(async () => {
  collector = await startCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  service = await startTwoProcesses(env, { workers: { POOL_MAX: '20' } });
  ({ workers, front } = service);
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await collector?.[Symbol.asyncDispose]();
});

const newTrace = () => ({
  traceId: randomBytes(16).toString('hex'),
  spanId: randomBytes(8).toString('hex'),
});

async function create(body: object, headers: object = {}): Promise<string> {
  const answer = await front.request('POST', '/api/sessions', body, headers);
  expect(answer.status).toBe(201);
  expect(answer.body.status).toBe('active');
  return answer.body.id;
}

/** The trace's spans by their names, once all of these have arrived. */
function collected(
  isOfTrace: (span: CollectedSpan) => boolean,
  names: readonly string[],
): Promise<Record<string, CollectedSpan>> {
  return eventually(
    () => {
      const found = collector.spans().filter(isOfTrace);
      const known = new Set(found.map(({ name }) => name));
      return names.every((name) => known.has(name))
        ? Object.fromEntries(found.map((span) => [span.name, span]))
        : null;
    },
    `spans: ${names.join(', ')}`,
    60_000,
  );
}

/** The trace fields of each of the session's events. */
async function traceparents(sessionId: string): Promise<Record<string, string | undefined>> {
  const url = workers.runtime.nats_url;
  await using connection = await connectJetStream({ url, name: 'test' });
  const eventStore = createJetStreamEventStore(connection);
  const session = { kind: 'session', organizationId: 'dev', id: sessionId } as const;
  const found: Record<string, string | undefined> = {};
  for await (const { type, metadata } of eventStore.history<'session'>(session))
    found[type] = metadata.traceparent;
  return found;
}

const REQUEST = 'POST /api/sessions';
const PARTS = ['append session.requested', 'wait for browser'];

test('a create is one trace, from the caller over the events to the browser and back', async () => {
  const caller = newTrace();
  const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
  const id = await create({ locale: 'fr-FR' }, { traceparent });
  const spans = await collected(
    ({ traceId }) => traceId === caller.traceId,
    [REQUEST, ...PARTS, 'take request', 'launch browser'],
  );
  const request = spans[REQUEST];
  expect(request).toMatchObject({ parentSpanId: caller.spanId, roles: FRONT });
  expect(request?.attributes).toMatchObject({
    'bss.session_id': id,
    'http.route': '/api/sessions',
  });
  for (const part of PARTS)
    expect(spans[part]).toMatchObject({ parentSpanId: request?.spanId, roles: FRONT });
  const taking = spans['take request'];
  expect(taking).toMatchObject({ parentSpanId: request?.spanId, roles: WORKERS });
  expect(spans['launch browser']).toMatchObject({ parentSpanId: taking?.spanId, roles: WORKERS });

  const theirs = `00-${caller.traceId}-${taking?.spanId}-01`;
  expect(await traceparents(id)).toMatchObject({
    'session.requested': `00-${caller.traceId}-${request?.spanId}-01`,
    'session.assigned': theirs,
    'session.activated': theirs,
  });
  const { traceId, spanId = '' } = { traceId: caller.traceId, ...taking };
  expect(spans['wait for browser']?.links).toEqual([{ traceId, spanId }]);
});

test('a stop is one trace, up to the end of the browser', async () => {
  const caller = newTrace();
  const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;
  const id = await create({});
  await front.request('DELETE', `/api/sessions/${id}`, undefined, { traceparent });
  const names = ['DELETE /api/sessions/:id', 'end browser'] as const;
  const spans = await collected(({ traceId }) => traceId === caller.traceId, names);
  const [request, ending] = names.map((name) => spans[name]);
  expect(request).toMatchObject({ parentSpanId: caller.spanId, roles: FRONT });
  expect(ending).toMatchObject({ parentSpanId: request?.spanId, roles: WORKERS });
  const all = await eventually(
    async () => {
      const found = await traceparents(id);
      return 'session.stopped' in found && found;
    },
    'it has stopped',
    60_000,
  );
  const own = `00-${caller.traceId}-${request?.spanId}-01`;
  expect(all).toMatchObject({ 'session.stop-requested': own, 'session.stopped': own });
});

test('a caller without a trace begins one', async () => {
  const id = await create({});
  const { [REQUEST]: request } = await collected(
    ({ attributes }) => attributes['bss.session_id'] === id,
    [REQUEST, 'take request'],
  );
  expect(request?.parentSpanId).toBe('');
  const { 'session.requested': first, 'session.activated': last } = await traceparents(id);
  expect(first).toBe(`00-${request?.traceId}-${request?.spanId}-01`);
  expect(last?.split('-')[1]).toBe(request?.traceId);
});

test('the caller’s decision not to sample is respected: events have the trace, no span is sent', async () => {
  const caller = newTrace();
  const id = await create({}, { traceparent: `00-${caller.traceId}-${caller.spanId}-00` });
  expect((await traceparents(id))['session.activated']).toMatch(
    new RegExp(`^00-${caller.traceId}-[0-9a-f]{16}-00$`),
  );
  // A later span has been sent by the same way.
  const later = await create({});
  await collected(({ attributes }) => attributes['bss.session_id'] === later, [REQUEST]);
  expect(collector.spans().filter(({ traceId }) => traceId === caller.traceId)).toEqual([]);
});

test('an invalid traceparent begins a new trace', async () => {
  const wrong = [`00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, 'no', '-'.repeat(55)];
  for (const traceparent of wrong) {
    const id = await create({}, { traceparent });
    expect((await traceparents(id))['session.requested']).toMatch(
      /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/,
    );
    await front.request('DELETE', `/api/sessions/${id}`);
  }
});

test('a silent and then unavailable collector delays neither requests nor the shutdown', async () => {
  collector.hang();
  for (let time = 0; time < 5; time += 1) {
    const id = await create({});
    expect((await front.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  }
  await collector[Symbol.asyncDispose]();
  const id = await create({});
  expect((await front.request('DELETE', `/api/sessions/${id}`)).status).toBe(200);
  expect(await front.end('SIGTERM')).toBe(0);
  expect(await workers.end('SIGTERM')).toBe(0);
});
