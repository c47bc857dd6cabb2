import { expect, it } from 'vitest';
import type { CloudEvent } from '#events/cloud-event.ts';
import { toPublicEvent } from '#events/public-event.ts';
import { filtersFor } from '#events/subjects.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';
import { eventually, startService, type RunningService } from '#test/support/service/service.ts';
import { openStream, type Stream } from '#test/support/clients/sse-client.ts';
import { openLog } from '#test/support/service/service-log.ts';

const MASTER_KEY = 'the-master-key-of-three-processes';
const CLIENTS = 6;
const SESSIONS = 12;

/** Follows events as a client program does: when a stream ends, resumes at the next API. */
function follow(apis: readonly RunningService[], lastId: string) {
  const received: CloudEvent[] = [];
  const ends: string[] = [];
  let current: Stream | null = null;
  const over = new AbortController();

  async function run(): Promise<void> {
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const { apiUrl } = apis[turn % apis.length] as RunningService;
      try {
        const id = current?.lastId() ?? lastId;
        current = await openStream(`${apiUrl}/api/events`, { lastId: id });
        await current.ended;
        received.push(...current.events());
        ends.push(current.blocks.findLast(({ event }) => event === 'end')?.data ?? 'cut');
        lastId = current.lastId() ?? id;
      } catch {
        // No API listens at this address: try the next one.
      }
    }
  }
  const running = run();
  return {
    received: () => [...received, ...(current?.events() ?? []).filter(isNew)],
    ends,
    async stop() {
      over.abort();
      current?.[Symbol.dispose]();
      await running;
      return received;
    },
  };
  function isNew({ sequence }: CloudEvent): boolean {
    return sequence > (received.at(-1)?.sequence ?? 0);
  }
}

it('a stream whose API is killed or shut down resumes at another API, with no event lost or doubled', async () => {
  await using stack = new AsyncDisposableStack();
  const rest = stack.use(await startService({ MASTER_KEY, POOL_MAX: '20', POOL_MIN_IDLE: '2' }));
  const { nats_url: NATS_URL, redis_url: REDIS_URL } = rest.runtime;
  const settings = { MASTER_KEY, ROLES: 'api', NATS_URL, REDIS_URL };
  const [one, two] = await Promise.all([startService(settings), startService(settings)]);
  stack.use(one);
  stack.use(two);
  const opened = stack.use(await openLog(rest));
  const begin = await opened.eventStore.lastSequence();
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    follow(index % 2 === 0 ? [one, two] : [two, one], `${begin}`),
  );
  const created: Promise<void>[] = [];
  for (let count = 0; count < SESSIONS; count += 1) {
    const at = count < SESSIONS / 3 ? one : count < (2 * SESSIONS) / 3 ? two : rest;
    const { body } = await at.request('POST', '/api/sessions', { duration: '10m' });
    created.push(rest.request('DELETE', `/api/sessions/${body.id}`).then(() => undefined));
    // The first API is killed during the work; the second one is later asked to end.
    if (count === SESSIONS / 3) await one.end('SIGKILL');
    if (count === SESSIONS / 3 + 2) await one.startAgain();
    if (count === (2 * SESSIONS) / 3) await two.end('SIGTERM');
  }
  await Promise.all(created);
  const isOver = async () => (await opened.ledger('dev'))?.slotsInUse === 0;
  await eventually(isOver, 'all sessions have ended');
  const expected: CloudEvent[] = [];
  for await (const event of readEvents(opened.eventStore, filtersFor('dev', null), fail, {
    after: begin,
  }))
    expected.push(toPublicEvent(event));
  for (const client of clients) {
    const hasAll = () => client.received().length >= expected.length;
    await eventually(hasAll, 'each client has received the rest');
    const received = await client.stop();
    expect(received.map(({ sequence }) => sequence)).toEqual(
      expected.map(({ sequence }) => sequence),
    );
    expect(received).toEqual(expected);
  }
  const ends = clients.flatMap((client) => client.ends);
  expect(ends).toContain('cut');
  expect(ends.join()).toContain('shutting_down');
});

function fail(text: string): never {
  throw new Error(text);
}
