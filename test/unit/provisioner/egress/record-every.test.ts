import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { recordEvery } from '#src/roles/provisioner/pool/egress.ts';
import type { Pool } from '#src/roles/provisioner/pool/pool.ts';
import type { PooledBrowser } from '#src/roles/provisioner/pool/roster.ts';

/** How often the traffic of a browser with a proxy is recorded. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aPool(isOpen: boolean) {
  const recorded: number[] = [];
  const reporter = { session: async () => void recorded.push(Date.now()) };
  const pool = { isOpen, reporter, now: Date.now };
  const session = { organizationId: 'acme', id: 'ses_1' };
  const egress = { takeTraffic: () => ({ hosts: [] }) };
  const pooled = { workloadId: 'wl_1', phase: 'busy', session, egress };
  return { pool, pooled, recorded };
}

function record({ pool, pooled }: ReturnType<typeof aPool>): void {
  recordEvery(pool as unknown as Pool, pooled as unknown as PooledBrowser);
}

test('after 10 s, then after twice as long each time', async () => {
  const one = aPool(true);
  const from = Date.now();
  record(one);
  await vi.advanceTimersByTimeAsync(70_000);
  expect(one.recorded.map((at) => at - from)).toEqual([10_000, 30_000, 70_000]);
});

test('of a browser that was adopted, once the pool is open', async () => {
  const one = aPool(false);
  record(one);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(one.recorded).toEqual([]);
  one.pool.isOpen = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(one.recorded).toHaveLength(1);
});

test('never again once its session has ended', async () => {
  const one = aPool(true);
  record(one);
  one.pooled.phase = 'ending';
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(one.recorded).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});
