import { expect, test } from 'vitest';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';
import { keepParts, PARTS } from '#src/features/webhooks/sender/parts.ts';
import { eventually } from '#test/support/service/service.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

/** Leases end ten times as soon as the service's, so that a test need not wait for them. */
const leaseMs = LEASE_MS / 10;
const quickLeases = () => createMemoryLeases({ now: () => performance.now() * 10 });

/** Enough ids for each part to have some. */
const ids = Array.from({ length: 500 }, (_, count) => `whk_${count}`);

/** A process that keeps parts; `ending` is how long its work on a part takes to end. */
function startProcess(
  leases: Leases,
  ending: Promise<void> = Promise.resolve(),
  wanted: () => readonly string[] = () => ids,
) {
  const stop = new AbortController();
  const parts = keepParts(leases, {
    wanted,
    onChange: () => ending,
    signal: stop.signal,
    leaseMs,
  });
  return {
    ...parts,
    ours: () => ids.filter((id) => parts.isOurs(id)),
    async end() {
      stop.abort();
      await parts.ended;
      await parts.release();
    },
  };
}
const isSplit = (...processes: { ours: () => string[] }[]) => {
  const all = processes.flatMap((one) => one.ours());
  return all.length === ids.length && new Set(all).size === ids.length;
};

test('a process that joins later gets its share, and those that stay get the one of a process that ends', async () => {
  const leases = quickLeases();
  const first = startProcess(leases);
  await eventually(() => first.ours().length === ids.length, 'the first one has all');
  const second = startProcess(leases);
  const third = startProcess(leases);
  const most = (ids.length / PARTS) * 9;
  await eventually(
    () => isSplit(first, second, third) && first.ours().length < most && third.ours().length > 0,
    'all three have some, and none is with two',
  );
  for (const one of [first, second, third]) expect(one.ours().length).toBeLessThan(most);
  await first.end();
  await eventually(() => isSplit(second, third), 'the others have all');
  await Promise.all([second.end(), third.end()]);
});

test('a part is handed on only after the work on it has ended', async () => {
  const leases = quickLeases();
  const { promise: ending, resolve: endWork } = Promise.withResolvers<void>();
  const first = startProcess(leases, ending);
  await eventually(() => first.ours().length === ids.length, 'the first one has all');
  const second = startProcess(leases);
  await eventually(() => first.ours().length < ids.length, 'the first one gives some up');
  // Longer than a lease: it is renewed meanwhile.
  await eventually(
    () => leases.held().then((held) => held.size > PARTS),
    'the second one is there',
  );
  const left = first.ours().length;
  await new Promise((resolve) => setTimeout(resolve, 1.5 * leaseMs));
  expect([first.ours().length, second.ours().length]).toEqual([left, 0]);
  endWork();
  await eventually(() => isSplit(first, second), 'the second one has the rest');
  await Promise.all([first.end(), second.end()]);
});

test('a part whose lease ran out is not ours, also while the store of leases hangs', async () => {
  const leases = quickLeases();
  const { promise: answer, resolve: goOn } = Promise.withResolvers<void>();
  let isHanging = false;
  const process = startProcess({
    ...leases,
    async acquire(name, holder) {
      if (isHanging) await answer;
      return leases.acquire(name, holder);
    },
  });
  await eventually(() => process.ours().length === ids.length, 'it has all');
  isHanging = true;
  await eventually(() => process.ours().length === 0, 'none is ours', 3 * leaseMs);
  goOn();
  await process.end();
});

test('without webhooks no lease is renewed; the part of the first one is taken at once', async () => {
  const leases = quickLeases();
  let [asked, webhooks]: [number, string[]] = [0, []];
  const counted: Leases = {
    ...leases,
    renew: (name) => ((asked += 1), leases.renew(name)),
    acquire: (name, holder) => ((asked += 1), leases.acquire(name, holder)),
    held: () => ((asked += 1), leases.held()),
  };
  const process = startProcess(counted, Promise.resolve(), () => webhooks);
  process.look();
  await new Promise(setImmediate);
  expect(asked).toBe(0);
  webhooks = ids.slice(0, 1);
  process.look();
  // Within the turns that the answers take: no timer has to fire.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(process.isOurs(ids[0] as string)).toBe(true);
  expect([...(await leases.held())].filter((name) => name.startsWith('webhooks-'))).toHaveLength(1);
  webhooks = [];
  await eventually(() => !process.isOurs(ids[0] as string), 'its lease runs out');
  await process.end();
});

test('a store of leases that is away is asked once each round, not once for each part', async () => {
  const leases = quickLeases();
  let [asked, rounds] = [0, 0];
  const stop = new AbortController();
  const parts = keepParts(
    {
      ...leases,
      acquire() {
        asked += 1;
        return Promise.reject(new Error('away'));
      },
    },
    { wanted: () => ids, onChange: async () => void (rounds += 1), signal: stop.signal, leaseMs },
  );
  await eventually(() => rounds >= 3, 'three rounds are over');
  expect(asked).toBe(rounds);
  stop.abort();
  await parts.ended;
});
