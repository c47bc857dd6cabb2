import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { eventually } from '#test/support/service/service.ts';
import { nextTurn } from '#src/kernel/async/sleep.ts';

/** Profiles over HTTP, with simulated browsers and everything in this process's memory. */

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app?.[Symbol.asyncDispose]());

const as = (caller: string) => ({ authorization: `Bearer ${caller}` });
const [member, viewer, other] = ['member/bea', 'viewer/vic', 'other'].map(as);

async function createProfile(name = 'shop log-in'): Promise<string> {
  const made = await app.request('POST', '/api/profiles', { name }, member);
  expect(made.status).toBe(201);
  return made.body.id;
}
function createSession(profile: object, headers = {}) {
  return app.request('POST', '/api/sessions', { profile }, { ...member, ...headers });
}
async function read(id: string) {
  return (await app.request('GET', `/api/profiles/${id}`, undefined, viewer)).body;
}
async function stop(sessionId: string) {
  await app.request('DELETE', `/api/sessions/${sessionId}`);
  await eventually(async () => {
    const { body } = await app.request('GET', `/api/sessions/${sessionId}`);
    return body.status === 'stopped';
  }, 'the session has stopped');
}
async function typesOf(sessionId: string): Promise<string[]> {
  const { body } = await app.request('GET', `/api/sessions/${sessionId}/history`);
  return body.events.map(({ type }: { type: string }) => type);
}
async function stored(id: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of app.objects.list(`profiles/acme/${id}/`)) keys.push(key);
  return keys;
}

describe('a profile', () => {
  it('is created, listed, read and removed', async () => {
    const id = await createProfile('checkout');
    const summary = {
      id,
      name: 'checkout',
      created_at: expect.any(String),
      created_by: 'bea',
      latest_version: null,
      saving_session_id: null,
    };
    const listed = await app.request('GET', '/api/profiles?limit=1', undefined, viewer);
    expect(listed.body).toEqual({ profiles: [summary], total: expect.any(Number) });
    expect(await read(id)).toEqual({ ...summary, versions: [] });
    const path = `/api/profiles/${id}`;
    expect((await app.request('DELETE', path, undefined, member)).status).toBe(200);
    for (const method of ['GET', 'DELETE'] as const)
      expect(await app.request(method, path, undefined, member)).toMatchObject({
        status: 404,
        body: { error: 'PROFILE_NOT_FOUND', context: { profile_id: id } },
      });
  });

  it('is saved by one session at a time, and a second one gets its id', async () => {
    const id = await createProfile();
    const first = await createSession({ id, save: true });
    expect(first).toMatchObject({
      status: 201,
      body: { status: 'active', profile: { id, version: null, save: true, saved_version: null } },
    });
    expect(await createSession({ id, save: true })).toMatchObject({
      status: 409,
      body: { error: 'PROFILE_IN_USE', context: { profile_id: id, session_id: first.body.id } },
    });
    expect(await read(id)).toMatchObject({ saving_session_id: first.body.id });
    expect((await createSession({ id })).status).toBe(201);
    expect(await app.request('DELETE', `/api/profiles/${id}`)).toMatchObject({
      status: 409,
      body: { error: 'PROFILE_IN_USE', context: { session_id: first.body.id } },
    });
    await stop(first.body.id);
    expect(await read(id)).toMatchObject({
      latest_version: 1,
      saving_session_id: null,
      versions: [{ version: 1, session_id: first.body.id, origins: [], cookies: [] }],
    });
    const { body: ended } = await app.request('GET', `/api/sessions/${first.body.id}`);
    expect(ended.profile).toEqual({ id, version: null, save: true, saved_version: 1 });
    const types = await typesOf(first.body.id);
    expect(types.slice(-2)).toEqual(['session.profile-saved', 'session.stopped']);
    const second = await createSession({ id, save: true });
    expect(second.body.profile).toMatchObject({ version: 1 });
    await stop(second.body.id);
  });

  it('is free again when its session has failed, which has left the last version', async () => {
    const id = await createProfile();
    const { body: first } = await createSession({ id, save: true });
    app.browsers.crash(first.autoscaler_workload_id);
    await eventually(
      async () => (await typesOf(first.id)).includes('session.failed'),
      'the session has failed',
    );
    expect((await typesOf(first.id)).slice(-2)).toEqual([
      'session.profile-not-saved',
      'session.failed',
    ]);
    expect(await read(id)).toMatchObject({ latest_version: null, saving_session_id: null });
    const again = await createSession({ id, save: true });
    expect(again.status).toBe(201);
    await stop(again.body.id);
  });

  it('is saved where its user closes the browser', async () => {
    const id = await createProfile();
    const { body: session } = await createSession({ id, save: true });
    app.browsers.closeByUser(session.autoscaler_workload_id);
    await eventually(
      async () => (await typesOf(session.id)).includes('session.stopped'),
      'the session has stopped',
    );
    expect(await read(id)).toMatchObject({ latest_version: 1 });
  });

  it('is saved on request by a session that goes on, and again at its end', async () => {
    const id = await createProfile();
    const { body: session } = await createSession({ id, save: true });
    const saving = `/api/sessions/${session.id}/profile/save`;
    const saved = await app.request('POST', saving, undefined, member);
    expect(saved).toMatchObject({
      status: 200,
      body: { session_id: session.id, profile_id: id, version: 1 },
    });
    expect(await read(id)).toMatchObject({ latest_version: 1, saving_session_id: session.id });
    const { body } = await app.request('GET', `/api/sessions/${session.id}/why`);
    expect(body.chain.map(({ sentence }: { sentence: string }) => sentence)).toEqual([
      `it saved version 1 of profile ${id}`,
      `a save of profile ${id} was requested`,
    ]);
    const { body: reader } = await createSession({ id });
    expect(reader).toMatchObject({ status: 'active', profile: { version: 1 } });
    await stop(session.id);
    expect(await read(id)).toMatchObject({ latest_version: 2, saving_session_id: null });
    await stop(reader.id);
  });

  it('can be taken up at an older version, and counts on from the newest', async () => {
    const id = await createProfile();
    for (let count = 1; count <= 4; count += 1)
      await stop((await createSession({ id, save: true })).body.id);
    const { versions } = await read(id);
    expect(versions.map(({ version }: { version: number }) => version)).toEqual([4, 3, 2]);
    const older = await createSession({ id, version: 3, save: true });
    expect(older.body.profile).toMatchObject({ version: 3 });
    await stop(older.body.id);
    expect(await read(id)).toMatchObject({ latest_version: 5 });
    expect(await createSession({ id, version: 1 })).toMatchObject({
      status: 404,
      body: { error: 'PROFILE_VERSION_NOT_FOUND', context: { version: 1, versions: [3, 4, 5] } },
    });
    await app.request('DELETE', `/api/profiles/${id}`);
    expect(await stored(id)).toEqual([]);
  });

  it('fails the session, and says why, where its archive cannot be read', async () => {
    const id = await createProfile();
    await stop((await createSession({ id, save: true })).body.id);
    await app.objects.removeAll(`profiles/acme/${id}/`);
    const { body: session } = await createSession({ id });
    const { body } = await app.request('GET', `/api/sessions/${session.id}/why`);
    expect(JSON.stringify(body)).toContain(`version 1 of profile ${id} cannot be read`);
  });

  it('is of its organization alone, and no viewer creates or removes one', async () => {
    const id = await createProfile();
    await app.registerOther();
    const path = `/api/profiles/${id}`;
    expect((await app.request('GET', path, undefined, other)).status).toBe(404);
    expect((await app.request('DELETE', path, undefined, other)).status).toBe(404);
    expect((await app.request('GET', '/api/profiles', undefined, other)).body.total).toBe(0);
    const theirs = await app.request('POST', '/api/sessions', { profile: { id } }, other);
    expect(theirs).toMatchObject({ status: 404, body: { error: 'PROFILE_NOT_FOUND' } });
    for (const [method, where] of [
      ['POST', '/api/profiles'],
      ['DELETE', path],
    ] as const)
      expect((await app.request(method, where, { name: 'x' }, viewer)).status).toBe(403);
  });

  it('is asked for by an id and a version that there can be', async () => {
    for (const profile of [{}, { id: '../x' }, { id: 'prf_none' }])
      expect((await createSession(profile)).status).toBe('id' in profile ? 404 : 400);
    expect((await createSession({ id: 'prf_none', version: 0 })).status).toBe(400);
    expect((await app.request('POST', '/api/profiles', {}, member)).status).toBe(400);
  });

  it('is admitted once for a request that is repeated with its key', async () => {
    const id = await createProfile();
    const key = { 'idempotency-key': 'once' };
    const [one, two] = [
      await createSession({ id, save: true }, key),
      await createSession({ id, save: true }, key),
    ];
    expect(two.body.id).toBe(one.body.id);
    await stop(one.body.id);
  });
});

it('is saved beside at most two others of its organization; all are saved in the end', async () => {
  const ids = await Promise.all(
    Array.from({ length: 8 }, (_, at) => createProfile(`at once ${at}`)),
  );
  const sessions = await Promise.all(ids.map((id) => createSession({ id, save: true })));
  expect(sessions.map(({ status }) => status)).toEqual(ids.map(() => 201));
  const { put } = app.objects;
  let [running, most] = [0, 0];
  app.objects.put = async (...given) => {
    if (!given[0].startsWith('profiles/')) return put.call(app.objects, ...given);
    running += 1;
    most = Math.max(most, running);
    // The first ones wait for each other, however far apart they are, and then for one too many.
    await eventually(() => most >= 3, 'three are saved at once');
    for (let turns = 0; turns < 200; turns += 1) await nextTurn();
    return put.call(app.objects, ...given).finally(() => (running -= 1));
  };
  await Promise.all(sessions.map(({ body }) => stop(body.id))).finally(
    () => (app.objects.put = put),
  );
  expect(most).toBe(3);
  for (const id of ids) expect((await read(id)).latest_version).toBe(1);
});
