import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MCP_STREAM } from '#events/subjects.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamMcpSessions } from '#src/kernel/messaging/jetstream/jetstream-mcp-sessions.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import type { McpSession, McpSessions } from '#src/kernel/messaging/mcp-sessions.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';

type Opened = AsyncDisposable & {
  sessions: McpSessions;
  /** The sessions as another process sees them. */
  other: McpSessions;
};

const session: McpSession = {
  ...{ organizationId: 'acme', userId: 'ada', client: 'agent 1.0' },
  ...{ stream: 'none', streamId: null, ended: null },
};

describe.each([
  ...elsewhere([{ adapter: 'memory', open: openMemory }]),
  ...natsServers.map(({ where, start }) => ({
    adapter: `JetStream in a ${where}`,
    open: async () => openReal(await start()),
  })),
])('MCP sessions ($adapter)', ({ open }) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());
  const find = async (id: string) => (await opened.other.all()).find((one) => one.id === id);

  test('are found by every process, and made once', async () => {
    const id = freshId('mcp');
    await opened.sessions.create(id, session);
    expect(await opened.other.get(id)).toEqual(session);
    await expect(opened.other.create(id, session)).rejects.toThrow(RangeError);
    expect(await opened.other.get(freshId('mcp'))).toBeNull();
  });

  test('have a higher revision after each write, also of the same, and a new age', async () => {
    const id = freshId('mcp');
    await opened.sessions.create(id, session);
    const first = await find(id);
    expect(first).toMatchObject({ ...session, id });
    expect(await opened.other.change(id, (one) => one)).toEqual(session);
    const second = await find(id);
    expect(second?.revision).toBeGreaterThan(first?.revision ?? Infinity);
    let older = second;
    while ((older?.ageMs ?? 0) < 50) older = await find(id);
    await opened.sessions.change(id, (one) => one);
    expect((await find(id))?.ageMs).toBeLessThan(older?.ageMs ?? 0);
  });

  test('lose no change of two processes at once', async () => {
    const id = freshId('mcp');
    await opened.sessions.create(id, { ...session, client: '' });
    const add = (one: McpSession) => ({ ...one, client: `${one.client}x` });
    await Promise.all([opened.sessions, opened.other].map((of) => of.change(id, add)));
    await Promise.all([opened.sessions, opened.other].map((of) => of.change(id, add)));
    expect(await opened.sessions.get(id)).toMatchObject({ client: 'xxxx' });
  });

  test('stay as they are where the change says so, and are gone once removed', async () => {
    const id = freshId('mcp');
    await opened.sessions.create(id, session);
    const before = await find(id);
    expect(await opened.sessions.change(id, () => null)).toBeNull();
    const seen: number[] = [];
    await opened.sessions.change(id, (_, revision) => (seen.push(revision), null));
    expect(seen).toEqual([before?.revision]);
    await opened.other.remove(id);
    expect(await opened.sessions.get(id)).toBeNull();
    expect(await opened.sessions.change(id, (one) => one)).toBeNull();
    expect(await find(id)).toBeUndefined();
    await opened.other.remove(id);
  });

  test('are all listed, however many', async () => {
    const ids = Array.from({ length: 1_200 }, () => freshId('mcp'));
    for (let from = 0; from < ids.length; from += 100)
      await Promise.all(
        ids.slice(from, from + 100).map((id) => opened.sessions.create(id, session)),
      );
    const listed = new Set((await opened.other.all()).map(({ id }) => id));
    expect(ids.filter((id) => !listed.has(id))).toEqual([]);
  });
});

function openMemory(): Promise<Opened> {
  const sessions = createMemoryMcpSessions({ now: () => Date.now() });
  return Promise.resolve({
    ...{ sessions, other: sessions },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

test('JetStream is not written to while there are no sessions', async () => {
  await using nats = await startNats();
  await using connection = await connectJetStream({ url: nats.url });
  const sessions = await createJetStreamMcpSessions(connection);
  const written = async () => (await connection.jsm.streams.info(MCP_STREAM)).state.last_seq;
  expect([await sessions.all(), await written()]).toEqual([[], 0]);
  const id = freshId('mcp');
  await sessions.create(id, session);
  expect((await sessions.all()).map((one) => one.id)).toEqual([id]);
  await sessions.remove(id);
  const last = await written();
  expect([await sessions.all(), await written()]).toEqual([[], last]);
});

async function openReal(server: Server): Promise<Opened> {
  await using stack = new AsyncDisposableStack();
  stack.use(server);
  const [one, two] = await Promise.all(
    [1, 2].map(async () => stack.use(await connectJetStream({ url: server.url }))),
  );
  if (one === undefined || two === undefined) throw new Error('not connected');
  const sessions = await createJetStreamMcpSessions(one);
  const other = await createJetStreamMcpSessions(two);
  const all = stack.move();
  return { sessions, other, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
