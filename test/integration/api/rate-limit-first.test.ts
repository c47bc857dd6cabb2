import { expect, test } from 'vitest';
import { readOpenApi } from '#src/start/read-openapi.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** Also the routes that await the rate limiter in their handler, beside a read of their own. */

const { beforeAll, afterAll } = useVirtualTime();

const { paths } = await readOpenApi();
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, { security }]) => security.length > 0)
    .map(([method]) => [method.toUpperCase() as 'GET' | 'POST' | 'DELETE', path] as const),
);

let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  const limits = { requestsPerMinute: 0, concurrentSessions: 1, credits: 1, queueWeight: 1 };
  app = await startApp(undefined, { limits });
});
afterAll(() => app?.[Symbol.asyncDispose]());

test('every route that needs a credential is tested', () => {
  expect(operations.length).toBeGreaterThan(10);
});

test.each(operations)('%s %s is refused beyond the rate limit', async (method, path) => {
  const url = path.replace(/{\w+}/, 'ses_AAAAAAAAAAAAAAAAAAAAAA');
  for (const request of [url, `${url}?unknown=1`]) {
    const { status, body } = await app.request(method, request);
    expect([status, body.error]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  }
});
