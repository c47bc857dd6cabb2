import { spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudEvent } from '#events/cloud-event.ts';
import { toPublicEvent } from '#events/public-event.ts';
import { streamFilter, filtersFor } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type RunningService,
} from '#test/support/service/service.ts';
import { openStream, type Stream } from '#test/support/clients/sse-client.ts';
import { connectApi, errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import { openLog, type ServiceLog } from '#test/support/service/service-log.ts';

let service: RunningService;
let api: ApiClient;
let opened: ServiceLog;
/** What a person sees who follows it all in a terminal. */
let curl: ReturnType<typeof spawn>;
let shown = '';
beforeAll(async () => {
  service = await startService({ EVENT_STREAMS_MAX: '13', EVENT_STREAMS_PER_ORGANIZATION: '9' });
  api = await connectApi(service.apiUrl);
  opened = await openLog(service);
  const url = `${service.apiUrl}/api/events`;
  curl = spawn('curl', ['-sN', url, '-H', `Authorization: Bearer ${DEV_KEY}`]);
  curl.stdout?.setEncoding('utf8').on('data', (text: string) => (shown += text));
  await eventually(() => shown.includes('retry:'), 'curl shows the beginning');
});
afterAll(async () => {
  curl.kill();
  await opened[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

function stream(path: string, options = {}): Promise<Stream> {
  return openStream(service.apiUrl + path, options);
}

async function liveSession(labels: Record<string, string> = {}): Promise<string> {
  const { body } = await api.create({ labels });
  await api.stop(body.id as string);
  return body.id as string;
}

function hasEnded(events: readonly CloudEvent[], id: string): boolean {
  return events.some(({ type, subject }) => type === 'session.stopped' && subject === id);
}

/** The log itself, as clients should see it. */
async function logOf(subjects: readonly string[]): Promise<CloudEvent[]> {
  const events: CloudEvent[] = [];
  for await (const event of readEvents(opened.eventStore, subjects, () => undefined))
    events.push(toPublicEvent(event));
  return events;
}

describe('the stream of a session', () => {
  it('has the events of the event store and ends with the session', async () => {
    const { body } = await api.create();
    const id = body.id as string;
    using early = await stream(`/api/sessions/${id}/events`);
    await eventually(() => early.events().length === 2, 'what has been');
    await api.stop(id);
    await early.ended;
    const session = { kind: 'session', organizationId: 'dev', id } as const;
    const written = await logOf([streamFilter(session)]);
    expect(early.events()).toEqual(written);
    expect(written.map(({ type }) => type)).toEqual([
      'session.requested',
      'session.activated',
      'session.stop-requested',
      'session.stopped',
    ]);
    for (const { id: eventId, event, data } of early.blocks)
      expect(JSON.parse(data ?? '')).toMatchObject({ type: event, sequence: Number(eventId) });

    using late = await stream(`/api/sessions/${id}/events`, { lastId: '0' });
    await late.ended;
    expect(late.events()).toEqual(written);
    using rest = await stream(`/api/sessions/${id}/events?from=${written[2]?.sequence}`);
    await rest.ended;
    expect(rest.events()).toEqual(written.slice(2));
    const over = { headers: { 'last-event-id': late.lastId() ?? '' } };
    expect((await api.get(`/api/sessions/${id}/events`, over)).status).toBe(204);
  });

  it('is not found by another organization, like the stream of an unknown session', async () => {
    const id = await liveSession();
    await opened.register('stranger', 'free', 10);
    const key = await opened.issueKey('stranger', 'owner', api);
    const never = 'ses_neverneverneverneverne'.slice(0, id.length);
    const [theirs, missing] = await Promise.all(
      [id, never].map((one) => api.as(key).get(`/api/sessions/${one}/events`)),
    );
    expect(errorOf(theirs as never)).toBe('404 SESSION_NOT_FOUND');
    const foreign = JSON.stringify(theirs?.body).replaceAll(id, never);
    expect(foreign).toBe(JSON.stringify(missing?.body));
    expect(Object.keys(theirs?.headers ?? {})).toEqual(Object.keys(missing?.headers ?? {}));
    using own = await stream('/api/events', { key, lastId: '0' });
    await eventually(() => own.events().length === 3, 'its own');
    expect(new Set(own.events().map(({ subject }) => subject))).toEqual(new Set(['stranger']));
  });
});

describe('the stream of an organization', () => {
  it('begins with the next event, and resumes after a lost connection', async () => {
    using first = await stream('/api/events');
    const mark = await eventually(() => first.lastId(), 'its place');
    const end = await opened.eventStore.lastSequence();
    const subjects = filtersFor('dev', null);
    const one = await liveSession();
    await eventually(() => hasEnded(first.events(), one), 'an end');
    first[Symbol.dispose]();
    const other = await liveSession();
    using second = await stream('/api/events', { lastId: first.lastId() });
    using fromMark = await stream(`/api/events?from=${Number(mark) + 1}`);
    const received = () => [...first.events(), ...second.events()];
    await eventually(() => hasEnded(received(), other), 'the end of the other');
    const written = (await logOf(subjects)).filter(({ sequence }) => sequence > Number(mark));
    expect(Number(mark)).toBeLessThanOrEqual(end);
    await eventually(() => received().length >= written.length, 'the rest');
    expect(received()).toEqual(written);
    await eventually(() => fromMark.events().length >= written.length, 'all of it once more');
    expect(fromMark.events()).toEqual(written);
  });

  it('can be filtered by types and labels, and begin at a time', async () => {
    const since = new Date().toISOString();
    const id = await liveSession({ team: 'web', run: '7' });
    await liveSession({ team: 'web' });
    const typed = `/api/events?from=${since}&type=session.requested&type=session.stopped`;
    using types = await stream(typed);
    using labels = await stream(`/api/events?from=${since}&label=team=web&label=run=7`);
    await eventually(() => types.events().length === 4, 'two of each type');
    expect(new Set(types.events().map(({ type }) => type))).toEqual(
      new Set(['session.requested', 'session.stopped']),
    );
    const hasEnded = () => labels.events().some(({ type }) => type === 'session.stopped');
    await eventually(hasEnded, 'the life of one');
    expect(new Set(labels.events().map(({ subject }) => subject))).toEqual(new Set([id]));
  });

  it.each([
    ['?from=yesterday', {}],
    ['?from=-1', {}],
    ['?type=session.exploded', {}],
    ['?type=server.joined', {}],
    ['?label=nonsense', {}],
    ['?colour=red', {}],
    ['', { 'last-event-id': 'abc' }],
    ['', { 'last-event-id': '99999999' }],
  ])('is refused with %s %o', async (query, headers) => {
    expect(errorOf(await api.get(`/api/events${query}`, { headers }))).toBe('400 INVALID_REQUEST');
  });

  it('is not buffered by proxies and has the headers of every answer', async () => {
    using open = await stream('/api/events');
    expect(open.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
      'cache-control': 'no-store, no-transform',
      'x-ratelimit-limit': '1000',
      'x-ratelimit-remaining': expect.stringMatching(/^\d+$/),
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
    });
    const head = await api.send('HEAD', '/api/events');
    expect(head.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(errorOf(await api.as(null).get('/api/events'))).toBe('401 UNAUTHORIZED');
  });

  it('is readable by a viewer until the key is revoked', async () => {
    const key = await opened.issueKey('dev', 'viewer', api);
    using open = await stream('/api/events', { key });
    await liveSession();
    await eventually(() => open.events().length > 0, 'a viewer hears');
    await opened.revokeKey('dev', key);
    await open.ended;
    expect(open.blocks.at(-1)).toMatchObject({
      event: 'end',
      data: expect.stringContaining('credential_revoked'),
    });
    expect(open.lastId()).toBe(`${open.events().at(-1)?.sequence}`);
  });

  it('is limited in number, per organization and in total', async () => {
    await using open = new AsyncDisposableStack();
    for (let one = 0; one < 8; one += 1) open.use(await stream('/api/events'));
    expect(errorOf(await api.get('/api/events'))).toBe('429 STREAM_LIMIT_EXCEEDED');
    for (let one = 0; one < 4; one += 1) {
      await opened.register(`full_${one}`, 'free', 0);
      const key = await opened.issueKey(`full_${one}`, 'viewer', api);
      open.use(await stream('/api/events', { key }));
    }
    await opened.register('late', 'free', 0);
    const late = await opened.issueKey('late', 'viewer', api);
    expect(errorOf(await api.as(late).get('/api/events'))).toBe('503 UNAVAILABLE');
  });

  it('arrives at curl -N at once, with comments between', async () => {
    const id = await liveSession();
    const ownSubject = `"subject":"${id}"`;
    await eventually(
      () => shown.split('\n\n').some((block) => block.includes(ownSubject)),
      'it tells',
    );
    expect(shown).toMatch(/\n\nid: \d+\nevent: session\.stopped\ndata: {"specversion":"1\.0",/);
    await eventually(() => shown.endsWith('\n\n: heartbeat\n'), 'a heartbeat');
  });
});
