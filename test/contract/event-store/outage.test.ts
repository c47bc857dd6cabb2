import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Cause } from '#events/envelope.ts';
import { ADVISORY_STREAM, filterOf, filters, subjectOf } from '#events/subjects.ts';
import { Unavailable } from '#src/errors.ts';
import { connectJetStream } from '#src/event-store/jetstream/connect.ts';
import { createJetStreamEventLog } from '#src/event-store/jetstream/jetstream-event-store.ts';
import type { Appended, EventLog } from '#src/event-store/event-store.ts';
import { throughOneReader } from '#src/event-store/shared-subscription.ts';
import {
  accessed,
  aCause,
  aSession,
  change,
  freshId,
  ledgerOf,
  requested,
  slotReserved,
} from '#test/support/events.fixture.ts';
import { startWire } from '#test/support/servers/flaky-tcp-proxy.ts';
import {
  appendEach,
  historyOf,
  openRealLog,
  type RealLog,
} from '#test/support/stores/event-stores.ts';

const never = new AbortController().signal;

describe('the event log on JetStream', () => {
  let opened: RealLog;
  beforeEach(async () => {
    opened = await openRealLog();
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  test('loses and doubles nothing when the server is killed under appends', async () => {
    const { log, nats } = opened;
    const writers = Array.from({ length: 4 }, () => writeOn(log));
    const until = (count: number) =>
      expect
        .poll(() => writers.every(({ acknowledged }) => acknowledged.length >= count), {
          timeout: 20_000,
          interval: 5,
        })
        .toBe(true);
    await using together = await throughOneReader(opened.log);
    const all = [followUntilStopped(log), followUntilStopped(together)];
    for (const count of [30, 60, 90]) {
      await until(count);
      await nats.kill();
      await nats.restart();
    }
    await until(120);
    for (const writer of writers) await writer.stop();

    const end = await log.lastSequence();
    const every = Array.from({ length: end }, (_, index) => index + 1);
    for (const following of all) {
      await expect.poll(() => following.heard.length, { timeout: 10_000 }).toBe(end);
      await following.stop();
      expect(following.heard).toEqual(every);
    }
    for (const { session, acknowledged } of writers) {
      const commands = (await historyOf(log, session)).map((event) => event.cause.commandId);
      for await (const { cause } of log.history(ledgerOf(session)))
        expect(commands).toContain(cause.commandId);
      expect(new Set(commands).size).toBe(commands.length);
      expect(commands).toEqual(expect.arrayContaining(acknowledged));
      expect(acknowledged.length).toBeGreaterThanOrEqual(120);
    }
  });

  test('says within its bounds that it is away, and works again when it is back', async () => {
    const { log, nats } = opened;
    const session = aSession();
    const [sequence = 0] = await appendEach(log, session, 1);
    const inbox = await log.inbox('worker', [filterOf(session)]);
    await (await inbox.next(1_000, never))?.ack();
    await nats.kill();
    const startedAt = performance.now();
    const asked = [
      log.append([change(sequence, accessed(session))]),
      log.last(session),
      log.lastSequence(),
      log.inbox('another', filters.sessions),
      inbox.next(500, never),
      historyOf(log, session),
    ];
    const answers = await Promise.allSettled(asked);
    expect(performance.now() - startedAt).toBeLessThan(6_000);
    for (const answer of answers)
      expect(answer.status === 'rejected' && answer.reason).toBeInstanceOf(Unavailable);

    await nats.restart();
    const waiting = inbox.next(20_000, never);
    const again = log.append([change(sequence, accessed(session))]);
    expect((await again).outcome).toBe('appended');
    // The kill may have cost the acknowledgement of the first: then it comes again before.
    const types = [(await waiting)?.item.type];
    if (types[0] === 'session.requested') types.push((await inbox.next(5_000, never))?.item.type);
    expect(types.at(-1)).toBe('session.accessed');
    expect(await historyOf(log, session)).toHaveLength(2);
  });

  test('ends a follower at once though the server is away', async () => {
    const stop = new AbortController();
    const options = { subjects: filters.all, after: 0, signal: stop.signal, onMalformed() {} };
    const follower = opened.log.follow(options)[Symbol.asyncIterator]();
    const next = follower.next();
    await opened.nats.kill();
    await expect.poll(() => opened.connection.isConnected()).toBe(false);
    stop.abort();
    const startedAt = performance.now();
    expect((await next).done).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test('passes over an event that cannot be read, and says so', async () => {
    const { log, connection } = opened;
    const session = aSession();
    const [first = 0] = await appendEach(log, session, 1);
    const { seq } = await connection.js.publish(subjectOf(session, 'session.queued'), 'not JSON');
    const appended = await log.append([change(seq, accessed(session))]);
    expect(appended).toMatchObject({ outcome: 'appended' });

    const stop = new AbortController();
    const poison: number[] = [];
    const onMalformed = ({ sequence }: { sequence: number }) => void poison.push(sequence);
    const options = { subjects: [filterOf(session)], after: 0, signal: stop.signal, onMalformed };
    const heard: number[] = [];
    for await (const batch of log.follow(options)) {
      heard.push(...batch.map((event) => event.sequence));
      if (heard.length === 2) break;
    }
    expect(heard).toEqual([first, seq + 1]);
    expect(poison).toEqual([seq]);
    await expect(historyOf(log, session)).rejects.toThrow('queued');

    const inbox = await log.inbox(freshId('inbox'), [filterOf(session)]);
    const taken = [await inbox.next(1_000, never), await inbox.next(1_000, never)];
    expect(taken.map((delivery) => delivery?.item.sequence)).toEqual([first, seq + 1]);
    expect(await parkedReasons(opened, 1)).toEqual([expect.stringContaining('queued')]);
  });

  test('keeps an account of what is parked, with its reason', async () => {
    const session = aSession();
    await appendEach(opened.log, session, 1);
    const inbox = await opened.log.inbox(freshId('inbox'), [filterOf(session)]);
    (await inbox.next(1_000, never))?.park('the image\nis gone');
    expect(await parkedReasons(opened, 1)).toEqual(['the image is gone']);
  });

  test('finds the command of a lost answer, though the aggregate has moved on since', async () => {
    const { nats, other } = opened;
    await using wire = await startWire(nats.port);
    const url = `nats://127.0.0.1:${wire.port}`;
    await using connection = await connectJetStream({ url });
    const log = createJetStreamEventLog(connection);
    const session = aSession();
    const cause = aCause();
    const changes = [change(0, requested(session, cause)), change(0, slotReserved(session, cause))];
    wire.breakOnAnswer();
    const appending = log.append(changes);
    await expect.poll(() => other.last(session)).not.toBeNull();
    const sequence = await other.lastSequence([filterOf(session)]);
    await other.append([change(sequence, accessed(session))]);
    expect(await appending).toEqual({ outcome: 'repeated' });
    expect(await log.append(changes)).toEqual({ outcome: 'repeated' });
    expect(await historyOf(other, session)).toHaveLength(2);
  });
});

/**
 * Appends to a session and its ledger, one command after the other, as `handle` does, until
 * stopped.
 */
function writeOn(log: EventLog) {
  const session = aSession();
  const acknowledged: string[] = [];
  const stopping = new AbortController();

  async function attempt(cause: Cause): Promise<Appended['outcome']> {
    const last = await log.last(session, { fromLeader: true });
    const ledger = await log.last(ledgerOf(session), { fromLeader: true });
    const event = last === null ? requested(session, cause) : accessed(session, 1, cause);
    const changes = [change(last?.sequence ?? 0, event)];
    // Every other command is a batch.
    if (acknowledged.length % 2 === 1)
      changes.push(change(ledger?.sequence ?? 0, slotReserved(session, cause)));
    return (await log.append(changes)).outcome;
  }

  async function run() {
    while (!stopping.signal.aborted) {
      const cause = aCause();
      let outcome: Appended['outcome'] = 'conflict';
      while (outcome === 'conflict') {
        try {
          outcome = await attempt(cause);
        } catch (error) {
          // Not acknowledged: whether it is stored nobody knows, and nobody counts on it.
          if (error instanceof Unavailable) break;
          throw error;
        }
      }
      if (outcome !== 'conflict') acknowledged.push(cause.commandId);
    }
  }
  const running = run();
  return {
    session,
    acknowledged,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The sequences of all events as a follower of the whole log hears them. */
function followUntilStopped(log: EventLog) {
  const stop = new AbortController();
  const heard: number[] = [];
  async function run() {
    const options = { subjects: filters.all, after: 0, signal: stop.signal, onMalformed() {} };
    for await (const batch of log.follow(options))
      heard.push(...batch.map((event) => event.sequence));
  }
  const running = run();
  return {
    heard,
    async stop() {
      stop.abort();
      await running;
    },
  };
}

/** The reasons in the advisories of parked messages, once there are so many. */
async function parkedReasons({ connection }: RealLog, count: number): Promise<string[]> {
  const { jsm } = connection;
  await expect
    .poll(async () => (await jsm.streams.info(ADVISORY_STREAM)).state.messages)
    .toBe(count);
  const reasons: string[] = [];
  for (let seq = 1; seq <= count; seq++) {
    const advisory = await jsm.streams.getMessage(ADVISORY_STREAM, { seq });
    reasons.push(advisory?.json<{ reason: string }>().reason ?? '');
  }
  return reasons;
}
