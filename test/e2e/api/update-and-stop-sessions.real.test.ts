import { afterAll, beforeAll, expect, it, test } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { runHere } from '#test/support/clients/command-here.ts';
import { errorOf, type ApiClient } from '#test/support/clients/api-client.ts';
import type { ServiceLog } from '#test/support/service/service-log.ts';
import {
  shareService,
  type SharedService,
  type Tenant,
} from '#test/support/shared/shared-service.ts';
import { lastOf } from '#test/support/stores/last-of.ts';

/** Changes of a session's attributes, and stops of several sessions, of two organizations. */

let shared: SharedService;
let log: ServiceLog;
let tenant: Tenant;
let acme: ApiClient;
let other: ApiClient;
beforeAll(async () => {
  shared = await shareService();
  ({ log } = shared);
  tenant = await shared.organization();
  acme = await shared.clientOf(tenant.id, 'member');
  ({ owner: other } = await shared.organization());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

const labels = { team: 'web' };
const filter = { label: ['team=web'] };
const stop = (api: ApiClient, body: object) => api.send('POST', '/api/sessions/stop', { body });
const update = (api: ApiClient, id: string, body: object) =>
  api.send('PATCH', `/api/sessions/${id}`, { body });

test('a member changes the attributes of a session; another organization and a viewer do not', async () => {
  const { id } = (await acme.create({ labels: { team: 'shop' } })).body;
  const changes = { session_name: 'renamed', description: 'new', labels };
  const { status, body } = await update(acme, id, changes);
  expect([status, body]).toEqual([200, (await acme.get(`/api/sessions/${id}`)).body]);
  expect(body).toMatchObject(changes);
  expect((await acme.get('/api/sessions?label=team=shop')).body.total).toBe(0);
  expect((await acme.get('/api/sessions?label=team=web&status=active')).body.total).toBe(1);
  expect(errorOf(await update(other, id, changes))).toBe('404 SESSION_NOT_FOUND');
  const viewer = await shared.clientOf(tenant.id, 'viewer');
  const before = await lastOf(log.eventStore, [`evt.${tenant.id}.>`]);
  expect(errorOf(await update(viewer, id, {}))).toMatch(/^40[03] /);
  expect(errorOf(await update(viewer, id, changes))).toBe('403 FORBIDDEN');
  expect(errorOf(await stop(viewer, { filter }))).toBe('403 FORBIDDEN');
  expect(await lastOf(log.eventStore, [`evt.${tenant.id}.>`])).toBe(before);
  await acme.stop(id);
  expect(errorOf(await update(acme, id, { session_name: 'late' }))).toBe('410 SESSION_ENDED');
  await log.ended(tenant.id, id);
});

it('stops the sessions of one organization that match, and says why', async () => {
  const meant = [(await acme.create({ labels })).body.id, (await acme.create({ labels })).body.id];
  const spared = (await acme.create()).body.id;
  const others = (await other.create({ labels })).body.id;
  expect(errorOf(await stop(acme, { filter: {} }))).toBe('400 INVALID_REQUEST');

  const before = await lastOf(log.eventStore, [`evt.${tenant.id}.>`]);
  const dry = await stop(acme, { filter, dry_run: true });
  expect(dry.body).toMatchObject({ dry_run: true, matched: 2, stopped: 0 });
  expect(dry.body.sessions.toSorted()).toEqual(meant.toSorted());
  expect(await lastOf(log.eventStore, [`evt.${tenant.id}.>`])).toBe(before);

  const { body } = await stop(acme, { filter, reason: 'a deploy' });
  expect(body).toEqual({ ...dry.body, dry_run: false, stopped: 2, reason: 'a deploy' });
  for (const id of meant) {
    expect((await acme.get(`/api/sessions/${id}`)).body.ended_reason).toBe('user');
    await log.ended(tenant.id, id);
  }
  expect((await acme.get(`/api/sessions/${spared}`)).body.status).toBe('active');
  expect((await other.get(`/api/sessions/${others}`)).body.status).toBe('active');
  const why = await runHere({ DATA_DIR: shared.service.dataDir }, 'why', meant[0]);
  expect(why).toMatchObject({
    text: expect.stringContaining('stopped 2 sessions at once: a deploy'),
  });
});

test('the client updates a session, and stops all that match', async () => {
  const { sessions } = createClient({ url: shared.service.apiUrl, apiKey: tenant.key });
  const { id } = await sessions.create({ labels: { by: 'client' } });
  const changed = await sessions.update(id, { labels: { by: 'update' } });
  expect(changed).toMatchObject({ id, labels: { by: 'update' } });
  const listed = await sessions.list({ user_id: changed.user_id, labels: { by: 'update' } });
  expect(listed.sessions.map((one) => one.id)).toEqual([id]);
  const stopped = await sessions.stopAll({ filter: { label: ['by=update'] } });
  expect(stopped).toMatchObject({ matched: 1, stopped: 1, sessions: [id], reason: null });
  expect((await sessions.get(id)).ended_reason).toBe('user');
});
