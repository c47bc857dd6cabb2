import { expect, it, onTestFinished } from 'vitest';
import { profilesMax } from '#src/kernel/domain/profile/profile.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** How many profiles an organization has, however many it asks for at once. */

async function start() {
  // A read model is behind, as it is with a store of its own.
  const app = await startApp((views) => ({
    ...views,
    async counts(...asked) {
      const counted = await views.counts(...asked);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return counted;
    },
  }));
  onTestFinished(() => app[Symbol.asyncDispose]());
  const create = () => app.request('POST', '/api/profiles', { name: 'one' });
  const countOf = async () => (await app.request('GET', '/api/profiles?limit=1')).body.total;
  return { app, create, countOf };
}

it('is a hundred exactly, also of those that are created at once', async () => {
  const { app, create, countOf } = await start();
  const answers = await Promise.all(Array.from({ length: profilesMax + 30 }, create));
  const made = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status !== 201);
  expect([made.length, await countOf()]).toEqual([profilesMax, profilesMax]);
  expect(new Set(refused.map(({ body }) => body.error))).toEqual(
    new Set(['PROFILE_LIMIT_EXCEEDED']),
  );
  const [first, second] = made.map(({ body }) => `/api/profiles/${body.id}`);
  for (const path of [first, second])
    expect((await app.request('DELETE', path ?? '')).status).toBe(200);
  // A removal is counted once.
  expect((await app.request('DELETE', first ?? '')).status).toBe(404);
  const again = await Promise.all([create(), create(), create()]);
  expect(again.map(({ status }) => status).toSorted()).toEqual([201, 201, 429]);
});
