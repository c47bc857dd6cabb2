import { expect, test } from 'vitest';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

const { beforeAll, afterAll } = useVirtualTime();

type App = Awaited<ReturnType<typeof startApp>>;
let app: App;
beforeAll(async () => {
  app = await startApp();
  await app.registerOther();
});
afterAll(() => app[Symbol.asyncDispose]());

const as = (bearer: string) => ({ authorization: `Bearer ${bearer}` });
const TARGET = 'https://user:pass@hooks.example.com/bss?key=secret';
const create = async (body: object = {}, bearer = 'admin') =>
  app.request('POST', '/api/webhooks', { url: TARGET, ...body }, as(bearer));

test('a webhook is created with a secret that is shown once, listed, changed and removed', async () => {
  const created = await create({ types: ['session.stopped'], labels: { team: 'web' } });
  expect(created.status).toBe(201);
  const { secret, ...webhook } = created.body;
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(webhook).toMatchObject({
    ...{ url: TARGET, types: ['session.stopped'], labels: { team: 'web' }, disabled: null },
    ...{ failing_since: null, last_delivery: null, waiting: 0, user_id: 'alan' },
  });
  const path = `/api/webhooks/${webhook.id as string}`;
  const listed = await app.request('GET', '/api/webhooks', undefined, as('admin'));
  expect(listed.body).toEqual({ webhooks: [webhook] });
  expect((await app.request('GET', path, undefined, as('owner'))).body).toEqual(webhook);

  const changes = { url: 'https://other.example.com/', types: [], disabled: true };
  const changed = await app.request('PATCH', path, changes, as('admin'));
  expect(changed.body).toMatchObject({
    ...{ url: 'https://other.example.com/', types: [], labels: { team: 'web' } },
    disabled: { reason: 'asked', detail: 'by alan' },
  });
  const rotated = await app.request('POST', `${path}/rotate-secret`, {}, as('admin'));
  expect(rotated.body).toMatchObject({ id: webhook.id });
  expect(rotated.body.secret).not.toBe(secret);

  expect((await app.request('DELETE', path, undefined, as('admin'))).status).toBe(204);
  const gone = await app.request('GET', path, undefined, as('admin'));
  expect([gone.status, gone.body.error]).toEqual([404, 'WEBHOOK_NOT_FOUND']);
});

test('the organization’s events have neither the URL nor a secret', async () => {
  const { body } = await create();
  const page = await app.request(
    'GET',
    '/api/events?format=json&after=0&limit=500&type=organization.webhook-added',
  );
  const text = JSON.stringify(page.body);
  expect(text).toContain(body.id);
  expect(text).toContain('https://hooks.example.com');
  for (const hidden of ['user:pass', 'key=secret', 'whsec_']) expect(text).not.toContain(hidden);
  await app.request('DELETE', `/api/webhooks/${body.id as string}`, undefined, as('admin'));
});

test.each([
  ['http://hooks.example.com/', 'not-https'],
  ['https://10.0.0.1/', 'inside'],
  ['https://inside.example/', 'inside'],
  ['https://bss.example.org/api/sessions', 'own'],
  ['https://alias.example/', 'own'],
  ['https://203.0.113.7/', 'own'],
  ['hooks', 'not-a-url'],
])('the URL %s is refused: %s', async (url, reason) => {
  const { status, body } = await create({ url });
  expect([status, body.error]).toEqual([400, 'INVALID_REQUEST']);
  expect(body.context).toEqual({ field: 'url', reason });
});

test.each([
  [{ url: 7 }, 'url'],
  [{ types: ['session.exploded'] }, 'types.0'],
  [{ labels: { team: 7 } }, 'labels.team'],
  [{ lables: {} }, 'lables'],
])('a request with %j is refused', async (fields, field) => {
  const { status, body } = await create(fields);
  expect([status, body.error, body.context.field]).toEqual([400, 'INVALID_REQUEST', field]);
});

test('members, viewers and other organizations reach no webhook', async () => {
  const { body } = await create();
  const path = `/api/webhooks/${body.id as string}`;
  const requests = [
    ['POST', '/api/webhooks', { url: TARGET }],
    ['GET', '/api/webhooks', undefined],
    ['GET', path, undefined],
    ['PATCH', path, { disabled: true }],
    ['DELETE', path, undefined],
    ['POST', `${path}/rotate-secret`, {}],
    ['POST', `${path}/replay`, { from: 1 }],
    ['GET', `${path}/deliveries`, undefined],
    ['GET', `${path}/deliveries/evt_1`, undefined],
  ] as const;
  for (const [method, at, payload] of requests)
    for (const role of ['member', 'viewer'])
      expect((await app.request(method, at, payload, as(role))).body.error).toBe('FORBIDDEN');
  for (const [method, at, payload] of requests.slice(2))
    expect((await app.request(method, at, payload, as('other'))).body.error).toBe(
      'WEBHOOK_NOT_FOUND',
    );
  const missing = await app.request('GET', `${path}/deliveries/evt_1`, undefined, as('admin'));
  expect([missing.status, missing.body.error]).toEqual([404, 'DELIVERY_NOT_FOUND']);
  await app.request('DELETE', path, undefined, as('admin'));
});

test('an organization has at most 20 webhooks', async () => {
  for (let count = 0; count < 20; count += 1) expect((await create({}, 'other')).status).toBe(201);
  const { status, body } = await create({}, 'other');
  expect([status, body.error, body.context]).toEqual([
    ...[429, 'WEBHOOK_LIMIT_EXCEEDED'],
    { limit: 20 },
  ]);
});
