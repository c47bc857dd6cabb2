import { afterEach, beforeEach, expect, test } from 'vitest';
import { pino } from 'pino';
import {
  EVENTS_STREAM,
  FIRED_SUBJECTS,
  firedSubject,
  timerSubject,
  TIMERS_STREAM,
} from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { runProjection } from '#projections/runner/run-projection.ts';
import { sessionView } from '#projections/session-view.ts';
import { createMemoryViews } from '#projections/store/views.memory.ts';
import { createMemoryMcpSessions } from '#src/kernel/messaging/mcp-sessions.memory.ts';
import { createCommandContext } from '#src/commands/handle-command.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { createJetStreamEventStore } from '#src/kernel/event-store/jetstream/jetstream-event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryDeadLetters } from '#src/kernel/messaging/dead-letters.memory.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { createJetStreamTimers } from '#src/kernel/messaging/jetstream/jetstream-timers.ts';
import { createJetStreamWorkQueues } from '#src/kernel/messaging/jetstream/jetstream-work-queue.ts';
import type { Timer } from '#src/kernel/messaging/timers.ts';
import { startTimekeeper } from '#src/roles/timekeeper/timekeeper.ts';
import { createSession } from '#test/support/examples.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { startNats } from '#test/support/servers/real-nats.ts';
import { eventually } from '#test/support/service/service.ts';
import { soakOr } from '#test/support/soak.ts';

/** Timers that fire while no timekeeper runs, on a real nats-server. */

const organizationId = 'acme';
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const SOON_MS = 60_000;
/**
 * Sessions that are due, of which half have lost their timers. CI has fewer, yet more of each half
 * than a timekeeper handles at once (64).
 */
const DUE = soakOr(500, 150);
const LATER = soakOr(50, 15);
let service: Awaited<ReturnType<typeof openService>>;
beforeEach(async () => {
  service = await openService();
});
afterEach(() => service?.[Symbol.asyncDispose]());

test('a session expires although its timer fired while no timekeeper ran', async () => {
  const { connection } = service;
  const id = await service.createArmed();
  service.pass(HOUR + SECOND);
  await createJetStreamTimers(connection).schedule(expiryOf(id), new Date());
  const fired = await eventually(() => firing(connection, id), 'it has fired');
  // It has no TTL: only a timekeeper's acknowledgement removes it.
  expect(fired.header.get('Nats-TTL')).toBe('');
  await service.startTimekeeper();
  await eventually(async () => (await service.read(id))?.status === 'stopped', 'it has expired');
  expect(await service.read(id)).toMatchObject({ endedReason: 'expired' });
  await eventually(async () => (await stored(connection)) === 0, 'the stream keeps no firing');
});

test('a session expires although its timer was lost, as by an earlier version', async () => {
  const { connection } = service;
  const id = await service.createArmed();
  service.pass(HOUR + 2 * MINUTE);
  // An earlier version let the server remove an unacknowledged firing after an hour.
  const target = firedSubject(organizationId, id, 'expiry');
  const schedule = { specification: new Date(), target, ttl: '1s' };
  const timer = JSON.stringify(expiryOf(id));
  await connection.js.publish(timerSubject(organizationId, id, 'expiry'), timer, { schedule });
  await eventually(async () => !(await service.isScheduled(id)), 'it has fired');
  await eventually(async () => (await stored(connection)) === 0, 'the server has removed it');
  await service.startTimekeeper();
  await eventually(async () => (await service.read(id))?.status === 'stopped', 'it has expired');
  expect(await service.read(id)).toMatchObject({ endedReason: 'expired' });
});

test('all sessions end once after hours without a timekeeper, and lost timers are set again', async () => {
  const { connection } = service;
  const timers = createJetStreamTimers(connection);
  const due = await service.createArmedMany(DUE, HOUR);
  const later = await service.createArmedMany(LATER, 20 * HOUR);
  service.pass(3 * HOUR);
  const [waiting, lost] = [due.slice(0, DUE / 2), due.slice(DUE / 2)];
  // As if the stream had been lost, and half of the timers had fired since.
  await connection.jsm.streams.purge(TIMERS_STREAM);
  for (const id of waiting) await timers.schedule(expiryOf(id), new Date());
  await eventually(async () => (await stored(connection)) === DUE / 2, 'half have fired', SOON_MS);
  await Promise.all([service.startTimekeeper(), service.startTimekeeper()]);

  const stops = 'evt.*.session.*.stopped';
  await eventually(
    async () => Object.keys(await service.countEvents(stops)).length === due.length,
    'all have ended',
    SOON_MS,
  );
  await eventually(async () => (await stored(connection)) === 0, 'all firings are handled');
  const scheduled = await eventually(async () => {
    const timers = Object.keys(await subjectsOf(connection, `tmr.${organizationId}.>`));
    return timers.length === 3 * later.length && timers;
  }, 'the timers of the others are set again');
  expect(scheduled.toSorted()).toEqual(
    later
      .flatMap((id) =>
        (['expiry', 'queue-after', 'queue-timeout'] as const).map((kind) =>
          timerSubject(organizationId, id, kind),
        ),
      )
      .toSorted(),
  );
  for (const event of ['stop-requested', 'stopped']) {
    const counts = await service.countEvents(`evt.*.session.*.${event}`);
    const once = [...waiting, ...lost].map((id) => [
      `evt.${organizationId}.session.${id}.${event}`,
      1,
    ]);
    expect(counts).toEqual(Object.fromEntries(once));
  }
  expect(await service.ledger()).toMatchObject({ slotsInUse: later.length, creditsUsed: 0 });
  expect(await service.read(later[0] ?? '')).toMatchObject({ status: 'creating' });
});

function expiryOf(sessionId: string): Timer {
  return { organizationId, sessionId, kind: 'expiry' };
}

/** Event store and timers on a nats-server, and timekeepers on a clock set by the test. */
async function openService() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const connection = stack.use(await connectJetStream({ url: nats.url }));
  let offsetMs = 0;
  const now = () => Date.now() + offsetMs;
  const context: CommandContext = createCommandContext(createJetStreamEventStore(connection), now);
  const views = stack.use(createMemoryViews());
  const stop = new AbortController();
  const folding = {
    eventStore: context.eventStore,
    views,
    deadLetters: createMemoryDeadLetters(),
    signal: stop.signal,
    onDeadLetter(event: unknown): never {
      throw new Error(JSON.stringify(event));
    },
  };
  const projecting = Promise.all([
    runProjection({ ...folding, projection: organizationSessions }),
    runProjection({ ...folding, projection: sessionView }),
  ]);
  stack.defer(async () => {
    stop.abort();
    await projecting;
  });
  const asked = { id: organizationId, name: 'Acme', tier: 'max', credits: 1_000_000 } as const;
  await registerOrganization(context, asked, newMetadata('test'));
  const parts = stack.move();

  const keepTime = () =>
    startTimekeeper({
      context,
      views,
      openWorkQueue: createJetStreamWorkQueues(connection),
      timers: createJetStreamTimers(connection),
      leases: createMemoryLeases(context),
      // Nothing but its expiry ends a session here.
      lostAfterMs: 10_000,
      mcp: { sessions: createMemoryMcpSessions({ now }), graceMs: 60_000, silenceMs: 60_000 },
      queue: { afterMs: 10 * HOUR, timeoutMs: 10 * HOUR },
      onLogReconnect: () => () => undefined,
      log: pino({ level: 'silent' }),
    });
  const isScheduled = async (id: string) =>
    (await held(connection, timerSubject(organizationId, id, 'expiry'))) > 0;

  async function createArmedMany(count: number, durationMs: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => freshId('ses'));
    const command = createSession({ durationMs, now: now(), fingerprint: null });
    const limits = { concurrentSessions: 1_000 };
    const timekeeper = await keepTime();
    await Promise.all(
      ids.map((id) =>
        handleSessionCommand(context, { organizationId, id }, command, newMetadata('test'), limits),
      ),
    );
    const areScheduled = async () => {
      const subjects = await subjectsOf(connection, `tmr.${organizationId}.>`);
      return ids.every((id) => timerSubject(organizationId, id, 'expiry') in subjects);
    };
    await eventually(areScheduled, 'every expiry is scheduled', SOON_MS);
    await timekeeper[Symbol.asyncDispose]();
    return ids;
  }

  return {
    connection,
    pass(ms: number) {
      offsetMs += ms;
    },
    /** Creates a session of an hour and schedules its timers, then stops the timekeeper. */
    async createArmed(): Promise<string> {
      const [id = ''] = await createArmedMany(1, HOUR);
      return id;
    },
    createArmedMany,
    /** The subjects of events that match the filter, each with its number of events. */
    countEvents: (filter: string) => subjectsOf(connection, filter, EVENTS_STREAM),
    async ledger() {
      const ledger = { kind: 'ledger', organizationId } as const;
      return (await loadState<'ledger'>(context.eventStore, ledger)).state;
    },
    async read(id: string) {
      return (
        await loadState<'session'>(context.eventStore, { kind: 'session', organizationId, id })
      ).state;
    },
    isScheduled,
    /** Runs until the end of the test. */
    async startTimekeeper() {
      parts.use(await keepTime());
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** The stored firing of a session's expiry; null while there is none. */
function firing({ jsm }: JetStreamConnection, id: string) {
  const subject = firedSubject(organizationId, id, 'expiry');
  return jsm.streams.getMessage(TIMERS_STREAM, { last_by_subj: subject });
}

/** How many firings the stream holds. */
function stored(connection: JetStreamConnection): Promise<number> {
  return held(connection, FIRED_SUBJECTS);
}

async function held(connection: JetStreamConnection, filter: string): Promise<number> {
  const counts = Object.values(await subjectsOf(connection, filter));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The subjects of the stream that match the filter, each with its number of messages. */
async function subjectsOf(
  { jsm }: JetStreamConnection,
  subjects_filter: string,
  stream = TIMERS_STREAM,
): Promise<Record<string, number>> {
  const { state } = await jsm.streams.info(stream, { subjects_filter });
  return state.subjects ?? {};
}
