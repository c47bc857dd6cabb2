import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFeed, type Feed, type StreamLimits } from '#src/roles/feed/feed.ts';
import { carryForward } from '#src/commands/carry-forward.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createCommandContext, handleCommand } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { registerOrganization } from '#src/commands/register-organization.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { appendEach, historyOf } from '#test/support/stores/event-stores.ts';
import { aSession } from '#test/support/events.fixture.ts';
import { createSession, requested } from '#test/support/examples.ts';
import { record } from '#test/support/history.ts';
import { eventually } from '#test/support/service/service.ts';
import { listen, type Listener } from '#test/support/clients/feed-listener.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

const ORGANIZATION = 'acme';
let eventStore: EventStore;
let feed: Feed;
beforeEach(() => {
  eventStore = createMemoryEventStore();
  feed = open({ clientsMax: 20, clientsPerOrganizationMax: 10 });
});
afterEach(() => feed[Symbol.asyncDispose]());

function open(limits: StreamLimits, on = eventStore): Feed {
  return createFeed({ ...limits, eventStore: on, logger: pino({ level: 'silent' }) });
}

/** Appends that many events of a new session of the organization. */
function append(count: number, organizationId = ORGANIZATION): Promise<number[]> {
  return appendEach(eventStore, aSession(organizationId), count);
}

function hasReceived(listener: Listener, sequences: readonly number[]): Promise<true> {
  const isAll = () => listener.sequences().length >= sequences.length;
  return eventually(isAll, `${sequences.length} events`).then(() => {
    expect(listener.sequences()).toEqual(sequences);
    return true;
  });
}

describe('a stream', () => {
  it('begins with the next event, and can be resumed before its first one', async () => {
    await append(3);
    const listener = await listen(feed, { organizationId: ORGANIZATION });
    expect(listener.lastId()).toBe(3);
    listener.leave();
    await append(2);
    const again = await listen(feed, { organizationId: ORGANIZATION, begin: listener.lastId() });
    await hasReceived(again, [4, 5]);
    expect(listener.sequences()).toEqual([]);
  });

  it('sends the whole backlog, then new events, each once and in order', async () => {
    const backlog = await append(250);
    const listener = await listen(feed, { organizationId: ORGANIZATION, begin: 0 });
    const live: number[] = [];
    for (let round = 0; round < 20; round += 1) live.push(...(await append(5)));
    await hasReceived(listener, [...backlog, ...live]);
  });

  it('sends an event as type, sequence and a CloudEvent on one line', async () => {
    const listener = await listen(feed, { organizationId: ORGANIZATION });
    await append(1);
    await hasReceived(listener, [1]);
    const [retry, position, id, type, data = ''] = listener.text().split('\n');
    expect(retry).toMatch(/^retry: \d+$/);
    expect([position, id, type]).toEqual(['id: 0', 'id: 1', 'event: session.requested']);
    expect(JSON.parse(data.slice('data: '.length))).toMatchObject({
      specversion: '1.0',
      type: 'session.requested',
      sequence: 1,
      state: { status: 'creating' },
    });
  });

  it('has nothing but events for a reader to which each blank line ends one', async () => {
    const listener = await listen(feed, { organizationId: ORGANIZATION });
    const heartbeats = () => listener.text().split(': heartbeat\n').length - 1;
    await eventually(() => heartbeats() === 2, 'heartbeats before the first event', 60_000);
    const sequences = await append(2);
    await hasReceived(listener, sequences);
    await eventually(() => heartbeats() === 4, 'heartbeats after an event', 60_000);
    await feed[Symbol.asyncDispose]();
    const read = listener.strictly();
    const ids = sequences.map(String);
    expect(read.map(({ id }) => id)).toEqual([...ids, ids.at(-1)]);
    const events = read.map(({ data }) => JSON.parse(data) as { type?: string });
    expect(read.map(({ event }) => event)).toEqual(events.map(({ type = 'end' }) => type));
  });

  it('that ends before its first event tells its position with its end', async () => {
    await append(3);
    const listener = await listen(feed, { organizationId: ORGANIZATION });
    await feed[Symbol.asyncDispose]();
    expect(listener.strictly()).toMatchObject([{ event: 'end', id: '3' }]);
  });

  it('sends no events of other organizations or of the fleet', async () => {
    const listener = await listen(feed, { organizationId: ORGANIZATION, begin: 0 });
    await append(2, 'other');
    const own = await append(2);
    await append(2, 'acme2');
    await hasReceived(listener, own);
  });

  it('of a session ends with the session’s final event, even if filtered by type', async () => {
    const sessionId = 'ses_1';
    const whole = await listen(feed, { organizationId: ORGANIZATION, sessionId, begin: 0 });
    const types = ['session.requested'];
    const first = await listen(feed, { organizationId: ORGANIZATION, sessionId, types, begin: 0 });
    await append(2);
    await live(sessionId);
    await eventually(() => whole.isEnded() && first.isEnded(), 'both have ended');
    const own = await historyOf(eventStore, {
      kind: 'session',
      organizationId: ORGANIZATION,
      id: sessionId,
    });
    expect(whole.sequences()).toEqual(own.map(({ sequence }) => sequence));
    expect(first.sequences()).toEqual([own[0]?.sequence]);
    expect(whole.text()).not.toContain('event: end');
    const after = await listen(feed, { organizationId: ORGANIZATION, sessionId, begin: 0 });
    await eventually(() => after.isEnded(), 'an ended session’s stream ends');
    expect(after.sequences()).toEqual(whole.sequences());
  });

  it('sends only the requested types and labels', async () => {
    await live('ses_1', { team: 'web', run: '1' });
    await live('ses_2', { team: 'web', run: '2' });
    const options = { organizationId: ORGANIZATION, begin: 0 };
    const types = ['ledger.slot-reserved', 'session.requested'];
    const typed = await listen(feed, { ...options, types });
    const labels = [
      ['team', 'web'],
      ['run', '2'],
    ] as const;
    const labelled = await listen(feed, { ...options, labels });
    const none = await listen(feed, { ...options, labels: [['toString', 'x']] });
    await live('ses_3', { team: 'web', run: '2' });
    const typesOf = (listener: Listener) =>
      [...listener.text().matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    await eventually(() => typed.sequences().length === 6, 'the types');
    expect(new Set(typesOf(typed))).toEqual(new Set(types));
    await eventually(() => labelled.sequences().length === 6, 'the labels');
    expect(labelled.text()).not.toContain('"subject":"ses_1"');
    expect(none.sequences()).toEqual([]);
  });

  it('sends no event that carries a state forward, and goes on after it', async () => {
    const identity = { organizationId: ORGANIZATION, id: 'ses_1' };
    const context = createCommandContext(eventStore, Date.now);
    const first = await append(1);
    await record<'session'>(eventStore, { kind: 'session', ...identity }, requested());
    const options = { organizationId: ORGANIZATION };
    const live = await listen(feed, options);
    const own = await listen(feed, { ...options, sessionId: 'ses_1' });
    const end = await eventStore.lastSequence();
    const session = { kind: 'session', ...identity } as const;
    expect(await carryForward(context, session, end, newMetadata('test'))).toBe('carried');
    const backlog = await listen(feed, { ...options, begin: 0 });
    const after = await append(1);
    await hasReceived(live, after);
    await hasReceived(backlog, [...first, end, ...after]);
    expect(own.sequences()).toEqual([]);
    expect(live.text()).not.toContain('carried-forward');
  });

  it('from a time begins with the first event decided then or later', async () => {
    await live('ses_1', {}, 1_000_000);
    const before = await eventStore.lastSequence();
    await live('ses_2', {}, 2_000_000);
    const since = new Date(2_000_000).toISOString();
    const listener = await listen(feed, { organizationId: ORGANIZATION, begin: 'since', since });
    const end = await eventStore.lastSequence();
    await hasReceived(
      listener,
      Array.from({ length: end - before }, (_, index) => before + 1 + index),
    );
  });

  it('is refused if the event store has not reached its position', async () => {
    await append(2);
    const options = { organizationId: ORGANIZATION };
    expect((await listen(feed, { ...options, begin: 3 })).refused).toBe('ahead');
    expect((await listen(feed, { ...options, begin: 2 })).refused).toBeNull();
    expect(feed.clients()).toBe(1);
  });
});

describe('a reader that stops', () => {
  it('is cut off with a reason once it is too far behind, and slows no other reader', async () => {
    const slow = await listen(feed, { organizationId: ORGANIZATION, room: 5_000 });
    const filtered = await listen(feed, {
      organizationId: ORGANIZATION,
      types: ['session.requested'],
      room: 5_000,
    });
    const quick = await listen(feed, { organizationId: ORGANIZATION });
    const other = await listen(feed, { organizationId: 'other' });
    const sequences = await append(1_200);
    await hasReceived(quick, sequences);
    await eventually(() => slow.isEnded(), 'it is cut off');
    expect(slow.text()).toMatch(/event: end\ndata: {"reason":"slow_reader",.*}\n\n$/);
    expect(slow.sequences()).toEqual(sequences.slice(0, slow.sequences().length));
    expect([quick, filtered, other].map((one) => one.isEnded())).toEqual([false, false, false]);
    const rest = await listen(feed, { organizationId: ORGANIZATION, begin: slow.lastId() });
    await hasReceived(rest, sequences.slice(slow.sequences().length));
  });

  it('misses nothing if it continues in time', async () => {
    const listener = await listen(feed, { organizationId: ORGANIZATION, room: 5_000 });
    const sequences = await append(500);
    expect(listener.sequences().length).toBeLessThan(10);
    listener.take(Infinity);
    await hasReceived(listener, sequences);
  });

  it('reads its backlog at its own pace, and gives its read slot to others', async () => {
    const sequences = await append(400);
    const slow = await Promise.all(
      Array.from({ length: 9 }, () =>
        listen(feed, { organizationId: ORGANIZATION, begin: 0, room: 1_000 }),
      ),
    );
    const quick = await listen(feed, { organizationId: ORGANIZATION, begin: 0 });
    await hasReceived(quick, sequences);
    for (const one of slow) expect(one.sequences().length).toBeLessThan(100);
    for (const one of slow) one.take(Infinity);
    await Promise.all(slow.map((one) => hasReceived(one, sequences)));
  });
});

describe('the feed', () => {
  it('limits the streams of one organization and of all', async () => {
    await feed[Symbol.asyncDispose]();
    feed = open({ clientsMax: 3, clientsPerOrganizationMax: 2 });
    const first = await listen(feed, { organizationId: 'a' });
    await listen(feed, { organizationId: 'a' });
    expect((await listen(feed, { organizationId: 'a' })).refused).toBe('organization-full');
    await listen(feed, { organizationId: 'b' });
    expect((await listen(feed, { organizationId: 'c' })).refused).toBe('process-full');
    first.leave();
    expect((await listen(feed, { organizationId: 'a' })).refused).toBeNull();
    expect(feed.clients()).toBe(3);
  });

  it('ends the streams of a revoked credential soon after the event', async () => {
    const organization = { kind: 'organization', organizationId: ORGANIZATION } as const;
    const context = createCommandContext(eventStore, Date.now);
    const registered = { id: ORGANIZATION, name: 'Acme', tier: 'free', credits: 1 } as const;
    await registerOrganization(context, registered, newMetadata('test'));
    const key = { keyId: 'key_1', hash: 'ab'.repeat(32), role: 'viewer', userId: 'eve' } as const;
    const change = (command: Parameters<typeof decideOrganization>[0]) =>
      handleCommand(
        context,
        organization,
        (state) => decideOrganization(command, state),
        newMetadata('test'),
      );
    await change({ type: 'IssueKey', key });
    let isGood = true;
    const listener = await listen(feed, { organizationId: ORGANIZATION, isAllowed: () => isGood });
    const other = await listen(feed, { organizationId: ORGANIZATION });
    isGood = false;
    await change({ type: 'RevokeKey', keyId: 'key_1' });
    await eventually(() => listener.isEnded(), 'its stream has ended', 2_500);
    expect(listener.text()).toContain('"reason":"credential_revoked"');
    expect(other.isEnded()).toBe(false);
  });

  it('ends all streams at disposal and opens no more', async () => {
    const listener = await listen(feed, { organizationId: ORGANIZATION });
    await feed[Symbol.asyncDispose]();
    expect(listener.isEnded()).toBe(true);
    expect(listener.text()).toMatch(/retry: \d+\nevent: end\ndata: {"reason":"shutting_down",/);
    expect((await listen(feed, { organizationId: ORGANIZATION })).refused).toBe('ending');
    expect(feed.clients()).toBe(0);
  });

  it('subscribes to the event store once for any number of streams', async () => {
    let followers = 0;
    const counted: EventStore = {
      ...eventStore,
      subscribe(options) {
        followers += 1;
        return eventStore.subscribe(options);
      },
    };
    await feed[Symbol.asyncDispose]();
    feed = open({ clientsMax: 20, clientsPerOrganizationMax: 10 }, counted);
    const many = await Promise.all(
      Array.from({ length: 10 }, () => listen(feed, { organizationId: ORGANIZATION })),
    );
    const sequences = await append(5);
    await Promise.all(many.map((one) => hasReceived(one, sequences)));
    expect(followers).toBe(1);
  });
});

/** A session's whole life: requested and failed, with the events of the ledger. */
async function live(id: string, labels: Record<string, string> = {}, now = Date.now()) {
  const identity = { organizationId: ORGANIZATION, id };
  const context = createCommandContext(eventStore, () => now);
  const registered = { id: ORGANIZATION, name: 'Acme', tier: 'max', credits: 10_000 } as const;
  await registerOrganization(
    createCommandContext(eventStore, () => 0),
    registered,
    newMetadata('test'),
  );
  const limits = { concurrentSessions: 100 };
  const create = createSession({ labels, now });
  await handleSessionCommand(context, identity, create, newMetadata('test'), limits);
  const stop = { type: 'StopSession', reason: 'user', now } as const;
  await handleSessionCommand(context, identity, stop, newMetadata('test'));
}
