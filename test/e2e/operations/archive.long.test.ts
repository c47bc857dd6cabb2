import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bss, bssWith, json } from '#test/support/clients/command-line.ts';
import {
  DEV_KEY,
  eventually,
  startService,
  type Answer,
  type RunningService,
} from '#test/support/service/service.ts';

/** What ended is archived and taken out of the event store, and every answer is as before. */

type Run = {
  segments: number;
  sessions: number;
  truncatedTo: number;
  viewsRemoved: number;
  heldBack: string | null;
};

let service: RunningService;
/** Ended sessions, a moment at which the first was active, and a session that goes on. */
let ended: string[];
let activeAt: string;
let endedAt: string;
let open: string;
let before: Record<string, unknown>;
let run: Run;

beforeAll(async () => {
  // A busy machine queues no session: that would be one more event of its life.
  service = await startService({ RETAIN_ENDED: 'forever', QUEUE_AFTER: '1h' });
  ended = [];
  for (let n = 0; n < 3; n += 1) ended.push(await live());
  endedAt = await laterThan(new Date().toISOString());
  open = (await service.request('POST', '/api/sessions', { duration: '30m' })).body.id;
  before = await answers();
  run = await archiveAll();
});
afterAll(() => service?.[Symbol.asyncDispose]());

function create(key: string): Promise<Answer> {
  const body = { duration: '30m', labels: { team: 'red' } };
  return service.request('POST', '/api/sessions', body, { 'idempotency-key': key });
}

/** The life of a session, to its end. */
async function live(): Promise<string> {
  const { id } = (await create(`session-${ended.length}`)).body;
  const path = `/api/sessions/${id}`;
  await service.request('GET', `${path}/access`);
  activeAt ??= await laterThan(new Date().toISOString());
  await service.request('POST', `${path}/extend`, { duration: '1h' });
  await service.request('DELETE', path);
  await eventually(async () => (await statusOf(id)) === 'stopped', 'it has stopped');
  return id;
}

async function statusOf(id: string): Promise<string> {
  return (await service.request('GET', `/api/sessions/${id}`)).body.status;
}

async function laterThan(time: string): Promise<string> {
  await eventually(() => new Date().toISOString() > time, 'the millisecond is over');
  return time;
}

/**
 * Archives everything that is older than now, until every part has read so far: what is held back
 * was sealed by an earlier run, and counts too.
 */
async function archiveAll(): Promise<Run> {
  const now = await laterThan(new Date().toISOString());
  let [segments, sessions] = [0, 0];
  return eventually(async () => {
    const done = (await json(service, 'archive', 'run', '--before', now)) as Run;
    segments += done.segments;
    sessions += done.sessions;
    return done.heldBack === null ? { ...done, segments, sessions } : null;
  }, 'every part has read what is archived');
}

/** All that is answered about the ended sessions. */
async function answers(): Promise<Record<string, unknown>> {
  const [first = ''] = ended;
  const read = async (path: string) => {
    const { status, body } = await service.request('GET', path);
    return { status, body };
  };
  const file = join(service.dataDir, 'audit.ndjson');
  await json(service, 'audit', 'export', '--to', endedAt, '--out', file);
  const [, ...lines] = (await readFile(file, 'utf8')).split('\n');
  await rm(file);
  const text = async (...args: string[]) => (await bss(service, ...args)).stdout;
  return {
    sessions: await Promise.all(ended.map((id) => read(`/api/sessions/${id}`))),
    asOf: await read(`/api/sessions/${first}?as_of=${activeAt}`),
    listAsOf: await read(`/api/sessions?as_of=${activeAt}`),
    statusAsOf: await read(`/api/status?as_of=${activeAt}`),
    usage: await read(`/api/usage?limit=100&to=${endedAt}`),
    usageTo: await read(`/api/usage?to=${activeAt}`),
    backlog: await backlog(first),
    repeated: (await create('session-0')).body,
    access: await Promise.all(ended.map((id) => read(`/api/sessions/${id}/access`))),
    stop: (await service.request('DELETE', `/api/sessions/${first}`)).body,
    extend: (await service.request('POST', `/api/sessions/${first}/extend`, { duration: '1h' }))
      .body,
    history: await text('session', 'history', first),
    at: await text('session', 'at', first, '--time', activeAt),
    why: await text('why', first),
    statement: await text('credits', 'statement', '--org', 'dev', '--to', endedAt),
    life: (await text('session', 'export', first)).replace(/"exported_at":"[^"]*"/, ''),
    audit: lines,
  };
}

/** The events of an ended session, from its first one on, as a stream sends them. */
async function backlog(id: string): Promise<string> {
  const headers = { authorization: `Bearer ${DEV_KEY}`, 'last-event-id': '0' };
  const response = await fetch(`${service.apiUrl}/api/sessions/${id}/events`, { headers });
  // A client's pause before it reconnects is random.
  return (await response.text()).replace(/^retry: .*$/m, '');
}

it('everything that had ended is in the archive, and no longer in the event store', async () => {
  expect(run).toMatchObject({ sessions: 3, heldBack: null });
  const status = await json(service, 'archive', 'status');
  expect(status).toMatchObject({
    segments: run.segments,
    sessions: 3,
    last_sequence: run.truncatedTo,
    event_store: {
      first_sequence: run.truncatedTo + 1,
      oldest_age_ms: expect.any(Number),
      lag_ms: 0,
      held_back: null,
    },
  });
});

it('every answer about an archived session is as before', async () => {
  const now = await answers();
  for (const [name, answer] of Object.entries(before)) expect(now[name], name).toEqual(answer);
});

it('the metrics say how much is archived, and nothing of a lag where nothing must be', async () => {
  const text = await (await fetch(`${service.apiUrl}/metrics`)).text();
  expect(text).toMatch(/^bss_archive_lag_seconds NaN$/im);
  expect(text).toContain(`\nbss_archive_events ${run.truncatedTo}\n`);
  expect(text).toMatch(/^bss_archive_bytes [1-9]\d*$/m);
});

it('the list has what is open, and says from when on it is complete', async () => {
  const list = async () => (await service.request('GET', '/api/sessions')).body;
  await eventually(async () => (await list()).complete_from !== undefined, 'the border is seen');
  const body = await list();
  expect(body.complete_from > activeAt).toBe(true);
  expect(body.sessions.map(({ id }: { id: string }) => id)).toEqual([open]);
});

it('the archive is verified with the event store, and alone', async () => {
  const { segments } = run;
  expect(await json(service, 'archive', 'verify')).toMatchObject({ agrees: true, segments });
  const alone = ['archive', 'verify', '--alone', '--json'];
  const { code, stdout } = await bssWith({ DATA_DIR: service.dataDir }, ...alone);
  expect([code, JSON.parse(stdout).agrees]).toEqual([0, true]);
});

it('read models are verified, and the ledger agrees with the sessions', async () => {
  expect((await bss(service, 'projections', 'verify')).code).toBe(0);
  expect((await bss(service, 'audit', 'ledger')).code).toBe(0);
});

describe('after a restart', () => {
  it('sessions go on, and new ones are created, and archived with the next run', async () => {
    await service.end('SIGTERM');
    await service.startAgain();
    const created = await service.request('POST', '/api/sessions', { duration: '30m' });
    expect([created.status, created.body.status]).toEqual([201, 'active']);
    ended.push(created.body.id);
    await service.request('DELETE', `/api/sessions/${created.body.id}`);
    await eventually(async () => (await statusOf(created.body.id)) === 'stopped', 'it is stopped');
    expect(await archiveAll()).toMatchObject({ sessions: 2 });
    expect(await statusOf(created.body.id)).toBe('stopped');
    const steps = (await json(service, 'session', 'history', ended[0] ?? '')) as unknown[];
    expect(steps).toHaveLength(6);
  });
});
