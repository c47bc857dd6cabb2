import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { isRejection } from '#src/kernel/errors.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import type { McpSession } from '#src/kernel/messaging/mcp-sessions.ts';
import { createMemoryTimers } from '#src/kernel/messaging/timers.memory.ts';
import { createMemoryWorkQueues } from '#src/kernel/messaging/work-queue.memory.ts';
import { endAllOrphans, watchLostClients } from '#src/roles/timekeeper/lost-clients.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { createSession, T0 } from '#test/support/examples.ts';
import { eventually } from '#test/support/service/service.ts';

/** When the browser sessions of a client of the MCP server end: by clocks that the test moves. */

const GRACE_MS = 120;
const CHECK_MS = GRACE_MS / 12;
const HOUR = 3_600_000;

/** By the store's clock, and by that of the timekeeper, which goes on from check to check. */
let storeNow: number;
let steadyNow: number;
/** How much the timekeeper's clock goes on in a check. */
let stepMs: number;
let checks: number;
/** Checks in which the store fails. */
let failures: Set<number>;
/** What the test does in a check. */
let whenChecked: Map<number, () => Promise<unknown>>;
let unreadable: string | null;
let running: Awaited<ReturnType<typeof start>>;

beforeEach(async () => {
  [storeNow, steadyNow, stepMs, checks] = [T0, 5_000, CHECK_MS, 0];
  failures = new Set();
  whenChecked = new Map();
  unreadable = null;
  running = await start();
});
afterEach(() => running[Symbol.asyncDispose]());

async function start() {
  const eventStore = createMemoryEventStore();
  const context = createCommandContext(eventStore, () => storeNow);
  const stores = createMemoryViews();
  const stop = new AbortController();
  const common = {
    ...{ eventStore, views: stores, deadLetters: createMemoryDeadLetters(), signal: stop.signal },
    onDeadLetter: (error: unknown) => expect.unreachable(String(error)),
  };
  const projecting = [
    runProjection({ ...common, projection: organizationSessions }),
    runProjection({ ...common, projection: sessionView }),
  ];
  for (const id of ['acme', 'umbrella'])
    await registerOrganization(
      context,
      { id, name: id, tier: 'max', credits: 10_000 },
      newMetadata('test'),
    );
  const sessions = createMemoryMcpSessions({ now: () => storeNow });
  const now = () => storeNow;
  const views: typeof stores = {
    ...stores,
    async readMany(projection, keys) {
      if (unreadable !== null && keys.some((key) => key.includes(String(unreadable))))
        throw new Error('not readable');
      return stores.readMany(projection, keys);
    },
  };
  const dependencies = {
    ...{ context, views, timers: createMemoryTimers({ now }), leases: createMemoryLeases({ now }) },
    openWorkQueue: createMemoryWorkQueues(eventStore, { clock: { now } }),
    lostAfterMs: 10_000,
    queue: { afterMs: 1, timeoutMs: 1 },
    mcp: {
      ...{ graceMs: GRACE_MS, silenceMs: HOUR },
      sessions: {
        ...sessions,
        async all() {
          checks += 1;
          steadyNow += stepMs;
          await whenChecked.get(checks)?.();
          if (failures.has(checks)) throw new Error('the store is away');
          return sessions.all();
        },
      },
    },
    onLogReconnect: () => () => undefined,
    log: pino({ level: 'silent' }),
  };
  const watching = watchLostClients(dependencies, stop.signal, () => steadyNow);
  return {
    context,
    dependencies,
    sessions,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([watching, ...projecting]);
    },
  };
}

const cut: McpSession = {
  ...{ organizationId: 'acme', userId: 'ada', client: 'agent 1.0' },
  ...{ stream: 'cut', streamId: null, ended: null },
};

/** An MCP session with a browser session, which the read model has. */
async function begin(id: string, mcpSession: McpSession = cut): Promise<void> {
  const { organizationId } = mcpSession;
  const { context, sessions } = running;
  await sessions.create(id, mcpSession);
  const created = await handleSessionCommand(
    context,
    { organizationId, id: `ses_${id}` },
    { ...createSession(), owner: { mcpSessionId: id } },
    newMetadata('test'),
    { concurrentSessions: 10 },
  );
  expect(isRejection(created)).toBe(false);
}

async function statusOf(id: string, organizationId = 'acme') {
  const ref = { kind: 'session', organizationId, id: `ses_${id}` } as const;
  return (await loadState<'session'>(running.context.eventStore, ref)).state?.status;
}

async function afterChecks(count: number): Promise<void> {
  const until = checks + count;
  await eventually(() => Promise.resolve(checks > until), `${count} checks more`);
}
const untilEnded = (id: string, organizationId?: string) =>
  eventually(async () => (await statusOf(id, organizationId)) === 'stopped', `${id} has ended`);

it('ends after the grace, if neither clock says otherwise', async () => {
  await begin('mcp_1');
  await afterChecks(20);
  // The store's clock has not moved.
  expect(await statusOf('mcp_1')).toBe('creating');
  storeNow += GRACE_MS;
  await untilEnded('mcp_1');
  expect(await running.sessions.get('mcp_1')).toMatchObject({ ended: { reason: 'organization' } });
});

it('ends after ten graces where an API process closed the stream, and not if it had none', async () => {
  await begin('mcp_1', { ...cut, stream: 'none', isAwaited: true });
  await begin('mcp_2', { ...cut, stream: 'none' });
  storeNow += 10 * GRACE_MS - 1;
  await afterChecks(20);
  expect(await statusOf('mcp_1')).toBe('creating');
  storeNow += 1;
  await untilEnded('mcp_1');
  const note = 'its MCP client agent 1.0 was cut off and did not come back';
  expect(await running.sessions.get('mcp_1')).toMatchObject({ ended: { note } });
  await afterChecks(20);
  expect(await statusOf('mcp_2')).toBe('creating');
});

it('goes on where the process or the machine was halted for an hour', async () => {
  await begin('mcp_1');
  stepMs = HOUR;
  storeNow += HOUR;
  await afterChecks(3);
  expect(await statusOf('mcp_1')).toBe('creating');
  // A sign of life comes.
  await running.sessions.change('mcp_1', (session) => session);
  stepMs = CHECK_MS;
  await afterChecks(20);
  expect(await statusOf('mcp_1')).toBe('creating');
});

it('goes on after an outage of the store, for a whole grace', async () => {
  // Between two failures the client is quiet for ten checks of twelve.
  failures = new Set([11, 22, 33, 44, 55]);
  await begin('mcp_1');
  storeNow += HOUR;
  let at60: string | undefined;
  whenChecked.set(60, async () => (at60 = await statusOf('mcp_1')));
  await untilEnded('mcp_1');
  expect(at60).toBe('creating');
});

it('goes on while signs of life come, though the store’s clock jumps', async () => {
  await begin('mcp_1', { ...cut, stream: 'open', streamId: 'str_1' });
  for (let beats = 0; beats < 10; beats += 1) {
    await running.sessions.change('mcp_1', (session) => session);
    storeNow += HOUR;
    await afterChecks(3);
  }
  expect(await statusOf('mcp_1')).toBe('creating');
  await untilEnded('mcp_1');
});

it('of one organization ends though another one’s sessions cannot be read', async () => {
  unreadable = 'umbrella';
  await begin('mcp_1', { ...cut, organizationId: 'umbrella' });
  await begin('mcp_2');
  storeNow += GRACE_MS;
  await untilEnded('mcp_2');
  expect(await statusOf('mcp_1', 'umbrella')).toBe('creating');
  unreadable = null;
  await untilEnded('mcp_1', 'umbrella');
});

it('whose MCP session the store has lost ends, though another organization’s cannot be read', async () => {
  unreadable = 'umbrella';
  for (const [id, organizationId] of [
    ['mcp_1', 'umbrella'],
    ['mcp_2', 'acme'],
  ] as const) {
    await begin(id, { ...cut, organizationId });
    await running.sessions.remove(id);
  }
  storeNow += HOUR;
  await eventually(async () => {
    await endAllOrphans(running.dependencies, ['umbrella', 'acme']);
    return (await statusOf('mcp_2')) === 'stopped';
  }, 'the readable one has ended');
  expect(await statusOf('mcp_1', 'umbrella')).toBe('creating');
});

it('ends also if it was made while its MCP session ended, and then the store forgets that', async () => {
  await begin('mcp_1');
  const ended = { reason: 'user', note: null } as const;
  await running.sessions.change('mcp_1', (session) => ({ ...session, ended }));
  await untilEnded('mcp_1');
  const late = { organizationId: 'acme', id: 'ses_late' };
  const create = { ...createSession(), owner: { mcpSessionId: 'mcp_1' } };
  await handleSessionCommand(running.context, late, create, newMetadata('test'), {
    concurrentSessions: 10,
  });
  await untilEnded('late');
  storeNow += HOUR;
  await eventually(
    async () => (await running.sessions.get('mcp_1')) === null,
    'the store has it no longer',
  );
});
