import { expect, test } from 'vitest';
import { soakOr } from '#test/support/soak.ts';
import { runSeeds } from './seeds.ts';

/** The short form finds the same kinds of faults, in fewer meetings of them. */
const SEEDS = soakOr(20_000, 1_000);
const FIRST = 1_000;

/** What the seeds have to meet, so that keeping the invariants says something. */
const MET = [
  'session.requeued',
  'session.queued',
  'session.extended',
  'session.expiry-warning',
  'session.carried-forward',
  'ledger.carried-forward',
  'server.draining',
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
  'refused: SESSION_LIMIT_EXCEEDED',
  'refused: INSUFFICIENT_CREDITS',
  'refused: NO_SERVERS_AVAILABLE',
  'refused: SESSION_NOT_ACTIVE',
  'reconciled: adopted',
  'reconciled: stopped',
  'reconciled: failed',
  'reconciled: corrected',
];

test(`${SEEDS} simulations of the whole service keep every invariant`, async ({ annotate }) => {
  const { events, counts } = await runSeeds(FIRST, SEEDS);
  await annotate(`${events} events`);
  expect(MET.filter((name) => counts[name] === undefined)).toEqual([]);
});
