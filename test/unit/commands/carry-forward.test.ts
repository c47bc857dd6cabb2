import { describe, expect, it, test } from 'vitest';
import type { Aggregates, RefOf } from '#events/events.ts';
import type { AggregateKind, AggregateRef } from '#events/subjects.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { createMemoryEventStore } from '#src/kernel/event-store/event-store.memory.ts';
import { createStateCache } from '#src/kernel/event-store/state-cache.ts';
import { carryForward, isFinished } from '#src/commands/carry-forward.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import { sessionRef } from '#test/support/given-when-then.ts';
import { record } from '#test/support/history.ts';
import {
  activated,
  createSession,
  failed,
  requested,
  stopped,
  stopRequested,
  T0,
} from '#test/support/examples.ts';
import {
  context,
  grant,
  ledgerRef,
  newCause,
  once,
  watchedLog,
} from '#test/support/watched-event-store.ts';

const organizationRef = { kind: 'organization', organizationId: 'org_acme' } as const;
const serverRef = { kind: 'server', id: 'srv_1' } as const;
const workloadRef = { kind: 'workload', id: 'wl_1' } as const;
const profileRef = { kind: 'profile', organizationId: 'org_acme', id: 'prf_1' } as const;
const terminated = { reason: 'session_ended', exitCode: 0 } as const;

type Event<Kind extends AggregateKind> = Aggregates[Kind]['event'];
const registered: Event<'organization'> = {
  type: 'organization.registered',
  data: { name: 'Acme', tier: 'pro' },
};
const issued: Event<'organization'> = {
  type: 'organization.key-issued',
  data: { keyId: 'key_1', hash: 'ab'.repeat(32), role: 'member', userId: 'user_1' },
};
const created: Event<'profile'> = {
  type: 'profile.created',
  data: { name: 'shop log-in', by: 'user_1', at: '2026-03-01T12:00:00.000Z' },
};
const removed: Event<'profile'> = {
  type: 'profile.removed',
  data: { by: 'user_1', at: '2026-03-01T13:00:00.000Z' },
};
const granted: Event<'ledger'> = { type: 'ledger.credits-granted', data: { credits: 600 } };
const joined: Event<'server'> = {
  type: 'server.joined',
  data: { ip: '10.0.0.7', browsers: 'simulated', poolMax: 4 },
};
const provisioning: Event<'workload'> = {
  type: 'workload.provisioning',
  data: { serverId: 'srv_1' },
};

/** An aggregate's history, of any kind. */
type Given = { aggregate: AggregateRef; events: Event<AggregateKind>[] };

function given<Kind extends AggregateKind>(aggregate: RefOf<Kind>, ...events: Event<Kind>[]) {
  return { aggregate, events };
}

const open: [string, Given][] = [
  ['an organization', given<'organization'>(organizationRef, registered, issued)],
  ['a ledger', given<'ledger'>(ledgerRef, granted)],
  ['a profile', given<'profile'>(profileRef, created)],
  ['a live server', given<'server'>(serverRef, joined)],
  ['a draining server', given<'server'>(serverRef, joined, { type: 'server.draining', data: {} })],
  ['a drained server', given<'server'>(serverRef, joined, { type: 'server.drained', data: {} })],
  ['a browser', given<'workload'>(workloadRef, provisioning)],
  ['a session that waits', given<'session'>(sessionRef, requested())],
  ['an active session', given<'session'>(sessionRef, requested(), activated())],
  ['a stopping session', given<'session'>(sessionRef, requested(), activated(), stopRequested())],
];

const finished: [string, Given][] = [
  ['a server that left', given<'server'>(serverRef, joined, { type: 'server.left', data: {} })],
  ['a removed profile', given<'profile'>(profileRef, created, removed)],
  ['a lost server', given<'server'>(serverRef, joined, { type: 'server.lost', data: {} })],
  [
    'a terminated browser',
    given<'workload'>(workloadRef, provisioning, { type: 'workload.terminated', data: terminated }),
  ],
  ['a stopped session', given<'session'>(sessionRef, requested(), stopRequested(), stopped(T0))],
  ['a failed session', given<'session'>(sessionRef, requested(), failed())],
];

async function storeWith({ aggregate, events }: Given): Promise<EventStore> {
  const eventStore = createMemoryEventStore();
  await record<AggregateKind>(eventStore, aggregate, ...events);
  return eventStore;
}

function carry(eventStore: EventStore, aggregate: AggregateRef, archivedUpTo: number) {
  return carryForward(context(eventStore), aggregate, archivedUpTo, newCause());
}

describe('an aggregate whose last event is archived', () => {
  test.each(open)('is carried forward unchanged: %s', async (_, life) => {
    const { aggregate } = life;
    const eventStore = await storeWith(life);
    const before = await eventStore.readLast(aggregate);
    const end = await eventStore.lastSequence();
    expect(await carry(eventStore, aggregate, end)).toBe('carried');
    expect(await eventStore.readLast(aggregate)).toMatchObject({
      type: `${aggregate.kind}.carried-forward`,
      sequence: end + 1,
      data: { archivedUpTo: end },
    });
    const after = await eventStore.readLast(aggregate);
    expect(after?.state).toEqual(before?.state);
    expect(
      isFinished(aggregate.kind, after?.state as NonNullable<typeof before>['state'] & {}),
    ).toBe(false);
  });

  test.each(finished)('is left where it is if nothing can change it: %s', async (_, life) => {
    const eventStore = await storeWith(life);
    const end = await eventStore.lastSequence();
    expect(await carry(eventStore, life.aggregate, end)).toBe('not-needed');
    expect(await eventStore.lastSequence()).toBe(end);
  });

  it('is carried forward again when that event is archived, too', async () => {
    const eventStore = await storeWith(given<'server'>(serverRef, joined));
    for (const archivedUpTo of [1, 2])
      expect(await carry(eventStore, serverRef, archivedUpTo)).toBe('carried');
    expect(await carry(eventStore, serverRef, 2)).toBe('not-needed');
  });
});

test('a state of another version is recorded in the present one, although it is not archived', async () => {
  const inner = await storeWith(given<'workload'>(workloadRef, provisioning));
  await record<'server'>(inner, serverRef, joined);
  const old: EventStore = {
    ...inner,
    async readLast<Kind extends AggregateKind>(aggregate: RefOf<Kind>) {
      const last = await inner.readLast<Kind>(aggregate);
      return last?.sequence === 2 ? { ...last, state: null } : last;
    },
  };
  expect(await carry(old, serverRef, 1)).toBe('carried');
  const last = await inner.readLast<'server'>(serverRef);
  expect(last).toMatchObject({ sequence: 3, state: { id: 'srv_1', status: 'live' } });
  expect(await carry(old, serverRef, 1)).toBe('not-needed');
});

describe('nothing is recorded', () => {
  test.each(open)('if the last event is not archived: %s', async (_, life) => {
    const eventStore = await storeWith(life);
    const end = await eventStore.lastSequence();
    expect(await carry(eventStore, life.aggregate, end - 1)).toBe('not-needed');
    expect(await eventStore.lastSequence()).toBe(end);
  });

  test.each(open)('if there is no event: %s', async (_, { aggregate }) => {
    const eventStore = createMemoryEventStore();
    expect(await carry(eventStore, aggregate, 10)).toBe('not-needed');
    expect(await eventStore.lastSequence()).toBe(0);
  });
});

describe('while another command changes the aggregate', () => {
  it('the state after that change is left, because it is not archived', async () => {
    const log = await watchedLog();
    log.beforeAppend = once(() => grant(log.inner, 1));
    expect(await carry(log, ledgerRef, 1)).toBe('not-needed');
    expect(await typesOf(log, ledgerRef)).toEqual([granted.type, granted.type]);
  });

  it('that change is carried forward if it is archived', async () => {
    const log = await watchedLog();
    log.beforeAppend = once(() => grant(log.inner, 1));
    expect(await carry(log, ledgerRef, 2)).toBe('carried');
    const last = await log.readLast<'ledger'>(ledgerRef);
    expect(last).toMatchObject({ sequence: 3, state: { creditsGranted: 601 } });
  });

  it('a session that ends meanwhile is left', async () => {
    const log = await watchedLog();
    const limits = { concurrentSessions: 5 };
    const ask = (command: Parameters<typeof handleSessionCommand>[2]) =>
      handleSessionCommand(context(log.inner), sessionRef, command, newCause(), limits);
    await ask(createSession());
    log.beforeAppend = once(() => ask({ type: 'StopSession', reason: 'user', now: T0 }));
    expect(await carry(log, sessionRef, 100)).toBe('not-needed');
    expect((await typesOf(log, sessionRef)).at(-1)).toBe('session.stopped');
  });

  it('an outdated state in the cache is not carried forward', async () => {
    const log = await watchedLog();
    const stateCache = createStateCache();
    const old = await log.readLast<'ledger'>(ledgerRef);
    if (old !== null) stateCache.observe(old);
    await grant(log, 1);
    const done = carryForward(context(log, stateCache), ledgerRef, 2, newCause());
    expect(await done).toBe('carried');
    expect((await log.readLast<'ledger'>(ledgerRef))?.state?.creditsGranted).toBe(601);
  });

  it('only the leader can say that it is not needed', async () => {
    const log = await watchedLog();
    log.replicaOf = () => null;
    expect(await carry(log, ledgerRef, 1)).toBe('carried');
    log.reads.length = 0;
    expect(await carry(log, ledgerRef, 1)).toBe('not-needed');
    expect(log.reads).toEqual(['ledger leader']);
  });
});

async function typesOf(eventStore: EventStore, aggregate: AggregateRef): Promise<string[]> {
  const history = await Array.fromAsync(eventStore.history(aggregate));
  return history.map(({ type }) => type);
}
