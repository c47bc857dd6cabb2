import { expect, test } from 'vitest';
import type { Views } from '#projections/store/views.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A list or status waits for a read model that is behind, and is never sent from stale data. */

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
/** Whether the read model is behind what this process has seen, and whether it catches up. */
let isBehind = false;
let catchesUp = false;

beforeAll(async () => {
  app = await startApp(standingStill);
  expect((await app.request('POST', '/api/sessions')).status).toBe(201);
});
afterAll(() => app?.[Symbol.asyncDispose]());

function standingStill(views: Views): Views {
  return {
    ...views,
    async page(projection, query) {
      const page = await views.page(projection, query);
      return isBehind ? { ...page, items: '', total: 0, checkpoint: 1 } : page;
    },
    async waitForCheckpoint(projection, sequence, timeoutMs) {
      if (isBehind && !catchesUp) return false;
      isBehind = false;
      return views.waitForCheckpoint(projection, sequence, timeoutMs);
    },
  };
}

test('a list from a read model that stays behind is refused, not stale', async () => {
  [isBehind, catchesUp] = [true, false];
  const { status, body } = await app.request('GET', '/api/sessions');
  expect([status, body.error, body.context]).toEqual([503, 'UNAVAILABLE', { part: 'read-model' }]);
});

test('a list waits for a read model that catches up', async () => {
  [isBehind, catchesUp] = [true, true];
  const { status, body } = await app.request('GET', '/api/sessions');
  expect([status, body.total]).toEqual([200, 1]);
});

test('a status from a read model that stays behind is refused, not stale', async () => {
  [isBehind, catchesUp] = [true, false];
  const { status, body } = await app.request('GET', '/api/status');
  expect([status, body.error, body.context]).toEqual([503, 'UNAVAILABLE', { part: 'read-model' }]);
});

test('a status waits for a read model that catches up', async () => {
  [isBehind, catchesUp] = [true, true];
  const { status, body } = await app.request('GET', '/api/status');
  expect([status, body.current_load.active_sessions]).toEqual([200, 1]);
});
