import { expect, test } from 'vitest';
import { soakOr } from '#test/support/soak.ts';
import { runSeeds } from './seeds.ts';

/** Of each half; the short form meets the same kinds of faults, less often. */
const SEEDS = soakOr(5_000, 250);
/** Each half has seeds of its own, and the first ones are those of simulation.test.ts. */
const FIRST = 1_000;
const HALF = 100_000;

/** What the seeds have to meet, so that keeping the invariants says something. */
const MET = [
  'session.requeued',
  'session.queued',
  'session.extended',
  'session.expiry-warning',
  'session.carried-forward',
  'ledger.carried-forward',
  'server.drained',
  'server.restarting',
  'server.lost',
  'failed: queue_timeout',
  'failed: launch_failed',
  'failed: browser_crashed',
  'failed: server_lost',
  'stopped: user',
  'stopped: expired',
  'stopped: idle',
  'stopped: operator',
  'stopped: browser_closed',
  'reconciled: adopted',
  'reconciled: stopped',
  'reconciled: failed',
  'reconciled: corrected',
  'refused: SESSION_LIMIT_EXCEEDED',
  'refused: INSUFFICIENT_CREDITS',
  'refused: NO_SERVERS_AVAILABLE',
  'refused: SESSION_NOT_ACTIVE',
];

/** Declares the test of one half: two files, so that two processes share the work. */
export function testHalf(half: 0 | 1): void {
  test(`${SEEDS} simulations of the whole service keep every invariant`, async ({ annotate }) => {
    const { events, counts } = await runSeeds(FIRST + half * HALF, SEEDS);
    await annotate(`${events} events`);
    expect(MET.filter((name) => counts[name] === undefined)).toEqual([]);
  });
}
