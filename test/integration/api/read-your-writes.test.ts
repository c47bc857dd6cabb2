import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Views } from '#projections/store/views.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A slow read model, as under load: no answer is sent before the read model holds its effect. */

const { beforeAll, afterAll } = useVirtualTime();

const SLOW_MS = 40;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  app = await startApp(slowToWrite);
});
afterAll(() => app?.[Symbol.asyncDispose]());

function slowToWrite(views: Views): Views {
  return {
    ...views,
    async write(projection, batch) {
      await pause(SLOW_MS);
      return views.write(projection, batch);
    },
  };
}

/** The answers of all reads about the newest session, requested at once. */
async function look() {
  const [{ body: list }, { body: status }] = await Promise.all([
    app.request('GET', '/api/sessions?limit=1'),
    app.request('GET', '/api/status'),
  ]);
  const [newest] = list.sessions;
  return { ...newest, total: list.total, active: status.current_load.active_sessions };
}

test('list and status show a create, an extension and a stop as soon as they are answered', async () => {
  for (let round = 1; round <= 3; round += 1) {
    const { body: session } = await app.request('POST', '/api/sessions', { duration: '1h' });
    const { id } = session;
    expect(await look()).toMatchObject({ id, status: 'active', total: round, active: 1 });
    const path = `/api/sessions/${id}`;
    const { expires_at } = (await app.request('POST', `${path}/extend`, { duration: '1h' })).body;
    expect(await look()).toMatchObject({ id, expires_at });
    await app.request('GET', `${path}/access`);
    expect((await look()).last_accessed_at).not.toBeNull();
    await app.request('DELETE', path);
    expect(await look()).toMatchObject({ id, status: /^stopp/, active: 0 });
  }
});
