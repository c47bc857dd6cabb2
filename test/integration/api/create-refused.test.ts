import { expect, test } from 'vitest';
import { Unavailable } from '#src/errors.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';

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
