import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { connectJetStream } from '#src/kernel/event-store/jetstream/connect.ts';
import { createJetStreamLeases } from '#src/kernel/messaging/jetstream/jetstream-leases.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import { claimLease, LeaseTaken, ownLeases } from '#src/kernel/messaging/owned-leases.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { elsewhere, natsServers, type Server } from '#test/support/servers/containers.ts';
import { hooks } from '#test/support/time/hooks.ts';

type OpenedLeases = AsyncDisposable & {
  leases: Leases;
  /** The leases as another process sees them. */
  other: Leases;
  leaseMs: number;
  now(): number;
  /** Waits for a moment: a tenth of a lease. */
  moment(): Promise<void>;
};

type LeasesAdapter = { adapter: string; open: (leaseMs: number) => Promise<OpenedLeases> };

export const memoryLeases = elsewhere<LeasesAdapter>([
  { adapter: 'memory', open: openMemoryLeases },
]);
export const realLeases: readonly LeasesAdapter[] = natsServers.map(({ where, start }) => ({
  adapter: `JetStream in a ${where}`,
  open: async (leaseMs: number) => openRealLeases(await start(), leaseMs),
}));

/** A lease that ends in no test. */
const PATIENT_MS = 600_000;
/** Long enough that a renewal each tenth of it is in time. */
const SHORT_MS = 3_000;

/** Who holds a lease while it lasts. */
export function leasesRules({ open }: LeasesAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedLeases;
  beforeAll(async () => {
    opened = await open(PATIENT_MS);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('are held by the servers that took one', async () => {
    const [one, two] = [freshId('server'), freshId('server')];
    await opened.leases.renew(one);
    await opened.leases.renew(two);
    const held = await opened.other.held();
    expect(held).toContain(one);
    expect(held).toContain(two);
    expect(held).not.toContain(freshId('server'));
  });

  test('end when they are released, and can be taken again', async () => {
    const [one, two] = [freshId('server'), freshId('server')];
    await opened.leases.renew(one);
    await opened.leases.renew(two);
    await opened.leases.release(one);
    expect(await opened.other.held()).not.toContain(one);
    expect(await opened.other.held()).toContain(two);
    await opened.leases.renew(one);
    expect(await opened.other.held()).toContain(one);
  });

  test('may be released by a server without one', async () => {
    await opened.leases.release(freshId('server'));
  });

  test('have one holder at a time, if they are acquired', async () => {
    const name = freshId('work');
    const { leases, other } = opened;
    expect(await leases.acquire(name, 'one')).toBe(true);
    expect(await other.acquire(name, 'two')).toBe(false);
    expect(await leases.acquire(name, 'one')).toBe(true);
    await leases.release(name);
    const taken = await Promise.all([leases.acquire(name, 'one'), other.acquire(name, 'two')]);
    expect(taken.toSorted()).toEqual([false, true]);
  });

  test('are released by their holder alone, if one is named', async () => {
    const name = freshId('work');
    const { leases, other } = opened;
    expect(await leases.acquire(name, 'one')).toBe(true);
    await other.release(name, 'two');
    expect(await other.acquire(name, 'two')).toBe(false);
    await leases.release(name, 'one');
    expect(await other.acquire(name, 'two')).toBe(true);
    // The one before releases late.
    await leases.release(name, 'one');
    expect(await leases.acquire(name, 'one')).toBe(false);
    await other.release(name, 'two');
    await other.release(name, 'two');
    expect((await leases.held()).has(name)).toBe(false);
  });

  describe('of a server with an owner', () => {
    test('are renewed and released by that owner alone, after its restart too', async () => {
      const server = freshId('server');
      const { one, restarted, two } = owned(opened);
      await one.renew(server);
      await expect(two.renew(server)).rejects.toThrow(LeaseTaken);
      await restarted.renew(server);
      await two.release(server);
      expect(await one.held()).toContain(server);
      await restarted.release(server);
      await two.renew(server);
      await expect(one.renew(server)).rejects.toThrow(LeaseTaken);
    });

    test('may be renewed twice at once', async () => {
      const server = freshId('server');
      const { one, restarted } = owned(opened);
      await Promise.all([one.renew(server), restarted.renew(server), one.renew(server)]);
      expect(await one.held()).toContain(server);
    });
  });
}

/** That leases which are not renewed end. */
export function leasesTimes({ open }: LeasesAdapter, { beforeAll, afterAll } = hooks): void {
  let opened: OpenedLeases;
  beforeAll(async () => {
    opened = await open(SHORT_MS);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('of work go to another holder, if they are not renewed', async () => {
    const name = freshId('work');
    const { leases, other } = opened;
    expect(await leases.acquire(name, 'one')).toBe(true);
    while (!(await other.acquire(name, 'two'))) await opened.moment();
    expect(await leases.acquire(name, 'one')).toBe(false);
  });

  test('of a server are refused to a copy while they are renewed, and free once they are not', async () => {
    const server = freshId('server');
    const { one, two } = owned(opened);
    await one.renew(server);
    await expect(claimLease(two, server, { withinMs: 0 })).rejects.toThrow(LeaseTaken);
    for (;;) {
      const refusal = await claimLease(two, server, { withinMs: 0 }).catch((error) => error);
      if (refusal === undefined) break;
      expect(refusal).toBeInstanceOf(LeaseTaken);
      await opened.moment();
    }
    await expect(one.renew(server)).rejects.toThrow(LeaseTaken);
  });

  test('expire one lease time after their last renewal, while renewed ones stay', async () => {
    const [lost, live] = [freshId('server'), freshId('server')];
    const renewedAt = opened.now();
    await opened.leases.renew(lost);
    const answeredAt = opened.now();
    while (opened.now() < answeredAt + 1.5 * opened.leaseMs) {
      await opened.leases.renew(live);
      expect(await opened.other.held()).toContain(live);
      const isHeld = (await opened.other.held()).has(lost);
      if (opened.now() < renewedAt + 0.9 * opened.leaseMs) expect(isHeld).toBe(true);
      await opened.moment();
    }
    expect(await opened.other.held()).not.toContain(lost);
  });
}

/** Leases of a server as its owner has them, the same owner after a restart, and a copy of it. */
function owned({ leases, other }: OpenedLeases) {
  const restarted = ownLeases(other, 'one');
  return { one: ownLeases(leases, 'one'), restarted, two: ownLeases(other, 'two') };
}

async function openMemoryLeases(): Promise<OpenedLeases> {
  let now = Date.now();
  const leases = createMemoryLeases({ now: () => now });
  return {
    leases,
    other: leases,
    leaseMs: LEASE_MS,
    now: () => now,
    async moment() {
      now += LEASE_MS / 10;
    },
    async [Symbol.asyncDispose]() {},
  };
}

async function openRealLeases(server: Server, leaseMs: number): Promise<OpenedLeases> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(server);
  const connections = await Promise.all([1, 2].map(() => connectJetStream({ url: nats.url })));
  for (const connection of connections) stack.use(connection);
  const [leases, other] = await Promise.all(
    connections.map((connection) => createJetStreamLeases(connection, { leaseMs })),
  );
  if (leases === undefined || other === undefined) throw new Error('two connections are open');
  const parts = stack.move();
  return {
    leases,
    other,
    leaseMs,
    now: () => Date.now(),
    moment: () => delay(leaseMs / 10),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
