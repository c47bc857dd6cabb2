import { expect, test } from 'vitest';
import { Unavailable } from '#src/kernel/errors.ts';
import { eventually } from '#test/support/service/service.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

const HOUR_MS = 3_600_000;

test('a create beyond MAX_LIFETIME is refused, and one without a duration is not', async () => {
  await using app = await startApp(undefined, { maxLifetimeMs: HOUR_MS });
  const refused = await app.request('POST', '/api/sessions', { duration: '1h1m' });
  expect([refused.status, refused.body]).toEqual([
    400,
    {
      error: 'INVALID_DURATION',
      message: 'Duration must be between 1 minute and 24 hours, and a session lives 1h at most.',
      code: 400,
      context: { duration: '1h1m', max_lifetime_minutes: 60 },
    },
  ]);
  expect((await app.request('POST', '/api/sessions', { duration: '1h' })).status).toBe(201);
  const { status, body } = await app.request('POST', '/api/sessions');
  expect(status).toBe(201);
  expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(HOUR_MS);
});

test.each([
  ['Europe/Berlin', 'Europe/Berlin'],
  ['europe/berlin', 'Europe/Berlin'],
  ['us/pacific', 'America/Los_Angeles'],
  ['utc', 'UTC'],
  ['-08', null],
  ['+05:30', null],
  ['Mars/Olympus', null],
])('the time zone %s is %s, by the name that browsers know', async (timezone, name) => {
  await using app = await startApp();
  const { status, body } = await app.request('POST', '/api/sessions', { timezone });
  if (name === null)
    expect([status, body.context]).toEqual([400, expect.objectContaining({ field: 'timezone' })]);
  else expect([status, body.timezone]).toEqual([201, name]);
});

test.each([
  ['de-CH', 'de-CH'],
  ['DE-de', 'de-DE'],
  ['de_DE', 'de-DE'],
  ['de', 'de'],
  ['pt-BR', 'pt-BR'],
  ['zh-hant-tw', 'zh-Hant-TW'],
  ['es-419', 'es-419'],
  ['iw-IL', 'he-IL'],
  ['sr-Latn-RS', 'sr-Latn-RS'],
  ['de-Latn-DE', 'de-Latn-DE'],
  // Languages and scripts whose dates and numbers Chromium does not know.
  ['is-IS', null],
  ['kk', null],
  ['tlh', null],
  ['de-Cyrl', null],
  ['und', null],
  // A browser's locale has no variants and no extensions.
  ['de-DE-u-co-phonebk', null],
  ['de-1996', null],
  ['x-mine', null],
  ['de-DE-de', null],
  ['i-klingon', null],
  ['not a locale', null],
  ['deutsch', null],
])('the locale %s is %s, as browsers write it', async (locale, name) => {
  await using app = await startApp();
  const { status, body } = await app.request('POST', '/api/sessions', { locale });
  if (name !== null) expect([status, body.locale]).toEqual([201, name]);
  else {
    expect([status, body.context]).toEqual([400, expect.objectContaining({ field: 'locale' })]);
    expect(body.message).toMatch(/^locale: /);
  }
});

test('while the list cannot be read, the session limit is reported without the ids', async () => {
  let isFolding = false;
  await using app = await startApp(
    (views) => ({
      ...views,
      page: (...asked) => {
        if (isFolding) throw new Unavailable('read-model', new Error('it is being folded again'));
        return views.page(...asked);
      },
    }),
    {
      limits: { requestsPerMinute: 1_000, concurrentSessions: 1, credits: 10_000, queueWeight: 1 },
    },
  );
  const first = await app.request('POST', '/api/sessions');
  const known = await app.request('POST', '/api/sessions');
  expect([known.status, known.body.context.session_ids]).toEqual([429, [first.body.id]]);
  isFolding = true;
  const { status, body } = await app.request('POST', '/api/sessions');
  expect([status, body.error]).toEqual([429, 'SESSION_LIMIT_EXCEEDED']);
  expect(body.context).not.toHaveProperty('session_ids');
});

test('description and labels have at most 2,048 bytes of UTF-8 together', async () => {
  await using app = await startApp();
  // 16 labels with names of 3 bytes, and values of 61 characters that have 2 bytes each.
  const labels = Object.fromEntries(
    Array.from({ length: 16 }, (_, at) => [`l${at + 10}`, 'ü'.repeat(61)]),
  );
  const most = { labels, description: 'x'.repeat(48) };
  expect((await app.request('POST', '/api/sessions', most)).status).toBe(201);
  const longer = { labels, description: 'x'.repeat(49) };
  const { status, body } = await app.request('POST', '/api/sessions', longer);
  expect([status, body]).toEqual([
    400,
    {
      error: 'INVALID_REQUEST',
      message:
        'description (49 bytes) and labels (2000 bytes) have 2049 bytes of UTF-8 together, ' +
        'and may have 2048.',
      code: 400,
      context: {
        field: 'labels',
        bytes: { description: 49, labels: 2_000 },
        max_bytes: 2_048,
      },
    },
  ]);
  const alone = await app.request('POST', '/api/sessions', { description: '€'.repeat(683) });
  expect([alone.status, alone.body.context.field]).toEqual([400, 'description']);
});

test('an Idempotency-Key is refused once its session has ended for 24 hours', async () => {
  await using app = await startApp();
  const headers = { 'idempotency-key': 'nightly' };
  const create = () => app.request('POST', '/api/sessions', {}, headers);
  const made = await create();
  expect(made.status).toBe(201);
  const { id } = made.body as { id: string };
  await app.request('DELETE', `/api/sessions/${id}`);
  const ended = async () => {
    const { body } = await app.request('GET', `/api/sessions/${id}`);
    return body.status === 'stopped';
  };
  await eventually(ended, 'it has ended');
  app.pass(23 * HOUR_MS);
  const soon = await create();
  expect([soon.status, soon.body.id]).toEqual([201, id]);
  app.pass(HOUR_MS);
  const late = await create();
  expect([late.status, late.body.error]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
  expect(late.body.context).toEqual({
    session_id: id,
    ended_at: expect.stringMatching(/Z$/),
  });
});
