import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { followClients, type ClientStream } from '#src/features/mcp/clients.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import type { McpSession } from '#src/kernel/messaging/mcp-sessions.ts';
import { eventually } from '#test/support/service/service.ts';

/** What a process notes of the MCP clients that it serves. */

const begun: McpSession = {
  ...{ organizationId: 'acme', userId: 'ada', client: 'agent 1.0' },
  ...{ stream: 'none', streamId: null, ended: null },
};
const log = pino({ level: 'silent' });

let stored: ReturnType<typeof createMemoryMcpSessions>;
/** Awaited before each change of the store. */
let beforeChange: () => Promise<unknown>;
let changes: number;
let clients: ReturnType<typeof followClients>;

beforeEach(() => {
  stored = createMemoryMcpSessions({ now: Date.now });
  beforeChange = async () => undefined;
  changes = 0;
  clients = start(40);
});
afterEach(() => clients[Symbol.asyncDispose]());

function start(graceMs: number) {
  const sessions: typeof stored = {
    ...stored,
    async change(id, next) {
      changes += 1;
      await beforeChange();
      return stored.change(id, next);
    },
  };
  return followClients({ sessions, graceMs }, log);
}

/** Opens the stream of a new MCP session. */
async function open(id: string, more: Partial<ClientStream> = {}) {
  await stored.create(id, begun);
  const reservation = clients.reserve(id, {
    organizationId: 'acme',
    isAllowed: async () => true,
    ...more,
    end(isProcessEnding) {
      more.end?.(isProcessEnding);
      reservation?.cut();
    },
  });
  await reservation?.opened();
  return reservation;
}
const revisionOf = async (id: string) =>
  (await stored.all()).find((one) => one.id === id)?.revision ?? 0;
async function afterBeats(id: string): Promise<void> {
  const before = await revisionOf(id);
  await eventually(async () => (await revisionOf(id)) > before + 2, 'signs of life are stored');
}

it('a stream that the process itself closes as it ends is not stored as cut but awaited', async () => {
  const closed: unknown[] = [];
  const end = (isProcessEnding?: boolean) => closed.push(isProcessEnding);
  await open('mcp_1', { end });
  await open('mcp_2', { end });
  await clients[Symbol.asyncDispose]();
  expect(closed).toEqual([true, true]);
  const awaited = { stream: 'none', streamId: null, isAwaited: true };
  expect(await stored.get('mcp_1')).toMatchObject(awaited);
  // One comes back with its stream, the other with a request alone.
  clients = start(40);
  const again = { organizationId: 'acme', isAllowed: async () => true, end: () => undefined };
  await clients.reserve('mcp_1', again)?.opened();
  expect(await stored.get('mcp_1')).toMatchObject({ stream: 'open', isAwaited: false });
  await clients.hear('mcp_2', { isBack: true }, async () => undefined);
  expect(await stored.get('mcp_2')).toMatchObject({ stream: 'none', isAwaited: false });
});

it('a client that was cut off during a request stays cut off while it is worked on', async () => {
  const reservation = await open('mcp_1');
  await clients.hear('mcp_1', { isBack: false }, async () => {
    reservation?.cut();
    await eventually(
      async () => (await stored.get('mcp_1'))?.stream === 'cut',
      'the store has that it is cut',
    );
    await afterBeats('mcp_1');
    expect(await stored.get('mcp_1')).toMatchObject({ stream: 'cut' });
  });
  await clients.hear('mcp_1', { isBack: true }, async () => undefined);
  expect(await stored.get('mcp_1')).toMatchObject({ stream: 'none' });
});

it('a client whose credential cannot be checked now is noted as there, and keeps its stream', async () => {
  let ends = 0;
  const isAllowed = () => Promise.reject(new Error('keys cannot be read'));
  await open('mcp_1', { isAllowed, end: () => (ends += 1) });
  await afterBeats('mcp_1');
  expect(ends).toBe(0);
  expect(await stored.get('mcp_1')).toMatchObject({ stream: 'open' });
});

it('a process that ends waits for the writes that are under way, and begins no further ones', async () => {
  clients = start(2_000);
  for (let number = 1; number <= 60; number += 1) await open(`mcp_${number}`);
  const gate = Promise.withResolvers<void>();
  beforeChange = () => gate.promise;
  changes = 0;
  await eventually(() => Promise.resolve(changes === 20), 'a round of signs of life has begun');
  const ended = clients[Symbol.asyncDispose]();
  gate.resolve();
  await ended;
  // One more for each stream that the process closes.
  expect(changes).toBe(20 + 60);
});
