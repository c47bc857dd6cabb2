import { describe, expect, it } from 'vitest';
import { isOf, type RecordedEvent } from '#events/events.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createSession, MINUTE } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

async function create(body: object = {}): Promise<string> {
  const { status, body: session } = await app.request('POST', '/api/sessions', body);
  expect(status).toBe(201);
  return session.id;
}
const stop = (body: object) => app.request('POST', '/api/sessions/stop', body);
const read = async (id: string) => (await app.request('GET', `/api/sessions/${id}`)).body;
async function listed(query: string): Promise<string[]> {
  const { body } = await app.request('GET', `/api/sessions?${query}`);
  return body.sessions.map(({ id }: { id: string }) => id);
}
async function eventsOf(type: string): Promise<RecordedEvent[]> {
  const events = await Array.fromAsync(readEvents(app.context.eventStore, ['evt.>'], () => {}));
  return events.filter((event) => event.type === type);
}

describe('PATCH of a session', () => {
  it('answers the session as GET does, and lists follow the labels', async () => {
    const id = await create({ labels: { stage: 'one' }, description: 'kept' });
    const changes = { session_name: 'renamed', labels: { stage: 'two' } };
    const { status, body } = await app.request('PATCH', `/api/sessions/${id}`, changes);
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...changes, id, description: 'kept' });
    expect(await read(id)).toEqual(body);
    expect(await listed('label=stage=one')).toEqual([]);
    expect(await listed('label=stage=one&status=active')).toEqual([]);
    expect(await listed('label=stage=two')).toEqual([id]);
    expect(await listed('label=stage=two&status=active')).toEqual([id]);
    const { body: list } = await app.request('GET', '/api/sessions?label=stage=two');
    expect(list.sessions[0].session_name).toBe('renamed');
  });

  it('records nothing where nothing differs', async () => {
    const id = await create({ session_name: 'same' });
    const before = await app.context.eventStore.lastSequence();
    const same = await app.request('PATCH', `/api/sessions/${id}`, { session_name: 'same' });
    expect([same.status, same.body.session_name]).toEqual([200, 'same']);
    const changed = await eventsOf('session.updated');
    expect(changed.filter(({ sequence }) => sequence > before)).toEqual([]);
  });

  it('refuses what a create refuses, an empty change, and sessions that have ended', async () => {
    const id = await create({ description: 'x'.repeat(1_000) });
    const refused = async (body: object, of = id) => {
      const reply = await app.request('PATCH', `/api/sessions/${of}`, body);
      return [reply.status, reply.body.error];
    };
    const long = Object.fromEntries(
      Array.from({ length: 9 }, (_, at) => [`label-${at}`, 'y'.repeat(128)]),
    );
    for (const body of [
      {},
      { session_name: '' },
      { labels: { 'no spaces': '' } },
      { labels: long },
      { duration: '1h' },
    ])
      expect(await refused(body), JSON.stringify(body)).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ session_name: 'a' }, 'ses_none')).toEqual([404, 'SESSION_NOT_FOUND']);
    await app.request('DELETE', `/api/sessions/${id}`);
    expect(await refused({ session_name: 'a' })).toEqual([410, 'SESSION_ENDED']);
  });
});

it('a list has the sessions of one user, alone or with a status and labels', async () => {
  const id = await create({ labels: { of: 'ada' } });
  expect(await listed('user_id=ada')).toContain(id);
  expect(await listed('user_id=ada&status=active&label=of=ada')).toEqual([id]);
  expect(await listed('user_id=ada&status=queued')).toEqual([]);
  expect(await listed('user_id=bob')).toEqual([]);
  const { status, body } = await app.request('GET', '/api/sessions?user_id=');
  expect([status, body.error, body.context]).toEqual([400, 'INVALID_REQUEST', { user_id: '' }]);
});

describe('a stop of several sessions', () => {
  it('is refused without a restriction, and with one that cannot be', async () => {
    for (const filter of [
      undefined,
      {},
      { label: [] },
      { label: ['team=a', 'team=b'] },
      { label: ['team'] },
      { status: 'stopped' },
      { created_before: 'yesterday' },
      { team: 'a' },
    ]) {
      const { status, body } = await stop({ filter });
      expect([status, body.error], JSON.stringify(filter)).toEqual([400, 'INVALID_REQUEST']);
    }
    const { body } = await stop({ filter: {} });
    expect(body.message).toBe('filter: name at least one restriction.');
    expect((await stop({ filter: { user_id: 'a' }, reason: 'x'.repeat(513) })).status).toBe(400);
  });

  it('only finds the sessions in a dry run', async () => {
    const id = await create({ labels: { run: 'dry' } });
    const before = (await eventsOf('organization.sessions-stop-requested')).length;
    const { body } = await stop({ filter: { label: ['run=dry'] }, reason: 'why', dry_run: true });
    const sessions = [id];
    expect(body).toEqual({ dry_run: true, matched: 1, stopped: 0, sessions, reason: 'why' });
    expect((await read(id)).status).toBe('active');
    expect(await eventsOf('organization.sessions-stop-requested')).toHaveLength(before);
  });

  it('stops those that match, with one event that joins them', async () => {
    const labels = { run: 'both' };
    const meant = [await create({ labels }), await create({ labels })];
    const other = await create({ labels: { run: 'other' } });
    const { body } = await stop({ filter: { label: ['run=both'] }, reason: 'deploy' });
    const sessions = meant.toReversed();
    expect(body).toEqual({ dry_run: false, matched: 2, stopped: 2, sessions, reason: 'deploy' });
    for (const id of meant) expect((await read(id)).ended_reason).toBe('user');
    expect((await read(other)).status).toBe('active');

    const joining = (await eventsOf('organization.sessions-stop-requested')).at(-1);
    const filter = { labels: { run: 'both' } };
    expect(joining?.data).toEqual({ filter, sessions: 2, note: 'deploy', by: 'ada' });
    const stops = (await eventsOf('session.stop-requested')).filter(
      (event) => isOf('session', event) && meant.includes(event.aggregate.id),
    );
    expect(stops).toHaveLength(2);
    for (const { data, metadata } of stops) {
      expect(data).toMatchObject({ reason: 'user', note: 'deploy' });
      expect(metadata.causationId).toBe(joining?.id);
      expect(metadata.correlationId).toBe(joining?.metadata.correlationId);
    }
    expect(new Set(stops.map(({ metadata }) => metadata.commandId)).size).toBe(2);

    const again = await stop({ filter: { label: ['run=both'] } });
    const none = { dry_run: false, matched: 0, stopped: 0, sessions: [], reason: null };
    expect(again.body).toEqual(none);
    expect((await eventsOf('organization.sessions-stop-requested')).at(-1)?.id).toBe(joining?.id);
  });

  it('is restricted by status, user and creation together', async () => {
    const labels = { run: 'all' };
    const early = await create({ labels });
    const { created_at } = await read(early);
    app.pass(60_000);
    const late = await create({ labels });
    const label = ['run=all'];
    const found = async (filter: object) =>
      (await stop({ filter: { label, ...filter }, dry_run: true })).body.sessions;
    const between = new Date(Date.parse(created_at) + 30_000).toISOString();
    expect(await found({})).toEqual([late, early]);
    expect(await found({ created_before: between })).toEqual([early]);
    expect(await found({ created_before: created_at })).toEqual([]);
    expect(await found({ status: 'active', user_id: 'ada' })).toEqual([late, early]);
    expect(await found({ status: 'queued' })).toEqual([]);
    expect(await found({ user_id: 'bob' })).toEqual([]);
    await stop({ filter: { label, created_before: between } });
    expect([(await read(early)).ended_reason, (await read(late)).status]).toEqual([
      'user',
      'active',
    ]);
  });

  it('stops at most 1,000 of them a request, the newest first; a repeat stops the next', async () => {
    await stop({ filter: { status: 'active' } });
    const labels = { run: 'thousand' };
    const asked = { ...createSession({ labels, durationMs: 5 * MINUTE }), userId: 'carl' };
    const ids = Array.from({ length: 1_001 }, (_, at) => `ses_${String(at).padStart(4, '0')}`);
    for (const [at, id] of ids.entries()) {
      const of = { organizationId: 'acme', id };
      const command = { ...asked, now: app.now() + at };
      const limits = { concurrentSessions: 2_000 };
      await handleSessionCommand(app.context, of, command, newMetadata('user/carl'), limits);
    }
    const filter = { user_id: 'carl', label: ['run=thousand'] };
    await eventually(
      async () => (await stop({ filter, dry_run: true })).body.matched === 1_001,
      'all sessions are found',
    );
    const dry = await stop({ filter, dry_run: true });
    expect(dry.body.sessions).toEqual(ids.slice(1).toReversed());
    const { body } = await stop({ filter });
    expect(body).toEqual({ ...dry.body, dry_run: false, stopped: 1_000 });
    const joining = (await eventsOf('organization.sessions-stop-requested')).at(-1);
    expect(joining?.data).toMatchObject({ sessions: 1_000 });
    const { body: next } = await stop({ filter });
    expect(next).toMatchObject({ matched: 1, stopped: 1, sessions: [ids[0]] });
    await eventually(async () => (await app.ledger())?.slotsInUse === 0, 'all slots are free');
  });

  it('gives back the slots and credits of all of them', async () => {
    await stop({ filter: { status: 'active' } });
    const labels = { run: 'many' };
    await eventually(async () => (await app.ledger())?.slotsInUse === 0, 'all slots are free');
    await Promise.all(Array.from({ length: 10 }, () => create({ labels })));
    expect(await app.ledger()).toMatchObject({ slotsInUse: 10 });
    const { body } = await stop({ filter: { label: ['run=many'], status: 'active' } });
    expect([body.matched, body.stopped, body.sessions.length]).toEqual([10, 10, 10]);
    await eventually(async () => (await app.ledger())?.slotsInUse === 0, 'all slots are free');
    expect((await app.ledger())?.creditsReserved).toBe(0);
  });
});
