import { expect, test } from 'vitest';
import { startObjectSweep } from '#src/kernel/objects/sweep/sweep-objects.ts';
import { createMemoryLeases } from '#src/kernel/messaging/leases.memory.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { useVirtualTime } from '#test/support/time/use-virtual-time.ts';

useVirtualTime();

test('removes what killed puts have left more often than it sweeps, and counts after a sweep', async () => {
  const objects = createMemoryObjectStore();
  const done: string[] = [];
  const startedAt = Date.now();
  const note = (what: string) => {
    done.push(`${what} at ${Math.round((Date.now() - startedAt) / 60_000)}`);
    return Promise.resolve(0);
  };
  const store = {
    ...objects,
    removeLeftovers: () => note('leftovers'),
    recount: () => note('recount'),
  };
  const log = { info: () => undefined } as unknown as Logger;
  const leases = createMemoryLeases({ now: Date.now });
  await using _ = startObjectSweep(
    { objects: store, rules: [], leases, requireOwnObjects: async () => {} },
    { everyMs: 25 * 60_000, log },
  );
  await new Promise((resolve) => setTimeout(resolve, 55 * 60_000));
  expect(done).toEqual([
    ...['leftovers at 10', 'leftovers at 20', 'leftovers at 25', 'recount at 25'],
    ...['leftovers at 35', 'leftovers at 45', 'leftovers at 50', 'recount at 50'],
  ]);
});
