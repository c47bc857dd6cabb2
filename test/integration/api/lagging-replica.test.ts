import { expect, test } from 'vitest';
import { streamFilter } from '#events/subjects.ts';
import type { Views } from '#projections/store/views.ts';
import { Unavailable } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { startApp } from '#test/support/service/api-in-memory.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

/** A replica of the event store that stands still answers reads that ask for no leader. */

const { beforeAll, afterAll } = useVirtualTime();

let app: Awaited<ReturnType<typeof startApp>>;
let isStandingStill = false;
let isReadModelAway = false;

beforeAll(async () => {
  app = await startApp(away, {}, standingStill);
});
afterAll(() => app?.[Symbol.asyncDispose]());

function standingStill(eventStore: EventStore): EventStore {
  const copies = new Map<string, unknown>();
  return {
    ...eventStore,
    async readLast(aggregate, options) {
      const key = streamFilter(aggregate);
      const newest = await eventStore.readLast(aggregate, options);
      if (!isStandingStill) copies.set(key, newest);
      const isFromCopy = isStandingStill && options?.fromLeader !== true && copies.has(key);
      return isFromCopy ? (copies.get(key) as typeof newest) : newest;
    },
  };
}

function away(views: Views): Views {
  return {
    ...views,
    async checkpoint(projection) {
      if (isReadModelAway) throw new Unavailable('read-model');
      return views.checkpoint(projection);
    },
  };
}

test('what a stop has answered, no later read takes back', async () => {
  const { body: session } = await app.request('POST', '/api/sessions');
  const path = `/api/sessions/${session.id}`;
  expect((await app.request('GET', `${path}/access`)).status).toBe(200);

  isStandingStill = true;
  expect((await app.request('DELETE', path)).status).toBe(200);
  isReadModelAway = true;
  const access = await app.request('GET', `${path}/access`);
  expect([access.status, access.body.error]).toEqual([410, 'SESSION_ENDED']);
  expect((await app.request('GET', path)).body.status).toMatch(/^stopp/);
});
