import { beforeEach, describe, expect, test } from 'vitest';
import type { BrowserOptions } from '#events/session.ts';
import { DEFAULTS } from '#src/roles/provisioner/pool/options.ts';
import {
  createPool,
  nextToLaunch,
  takeNextFor,
  unwantedLaunches,
  type Pool,
  type WaitingRequest,
} from '#src/roles/provisioner/pool/pool.ts';

const TOKYO: BrowserOptions = { ...DEFAULTS, timezone: 'Asia/Tokyo' };

let pool: Pool;
beforeEach(() => {
  pool = createPool({
    server: { id: 'srv_1', ip: '10.0.0.1' },
    limits: { minIdle: 0 },
  } as Parameters<typeof createPool>[0]);
});

function accept(organizationId: string, id: string, options = TOKYO): void {
  const event = { state: {} } as WaitingRequest['event'];
  const identity = { organizationId, id };
  pool.waiting.push({ identity, event, options, failures: 0, assigned: Promise.resolve(null) });
}
function leave(id: string): void {
  const at = pool.waiting.findIndex(({ identity }) => identity.id === id);
  pool.waiting.splice(at, 1);
}
const unwanted = () => unwantedLaunches(pool).map(({ workloadId }) => workloadId);

describe('the next launch', () => {
  test('is for the organization with the fewest launches under way', () => {
    accept('a', 'a1');
    accept('a', 'a2');
    pool.roster.add('wl_1', TOKYO, 'a');
    accept('b', 'b1', { ...TOKYO, timezone: 'Asia/Dubai' });
    expect(nextToLaunch(pool)).toMatchObject({ request: { identity: { id: 'b1' } }, launches: 0 });
  });

  test('is by turns for those with as many', () => {
    for (const id of ['a1', 'a2']) accept('a', id);
    accept('b', 'b1');
    expect(nextToLaunch(pool)?.request.identity.id).toBe('a1');
    takeNextFor(pool, TOKYO);
    expect(nextToLaunch(pool)?.request.identity.id).toBe('b1');
  });
});

test('launched browsers go to the organizations by turns, to those that asked for their options', () => {
  for (const id of ['a1', 'a2', 'a3']) accept('a', id);
  accept('b', 'b1');
  accept('c', 'c1', DEFAULTS);
  const taken = [1, 2, 3, 4, 5].map(() => takeNextFor(pool, TOKYO)?.identity.id);
  expect(taken).toEqual(['a1', 'b1', 'a2', 'a3', undefined]);
});

describe('a launch whose requester has gone', () => {
  test('is wanted as long as another request can use its browser', () => {
    accept('a', 'a1');
    pool.roster.add('wl_1', TOKYO, 'a');
    accept('b', 'b1');
    leave('a1');
    expect(unwanted()).toEqual([]);
    leave('b1');
    expect(unwanted()).toEqual(['wl_1']);
  });

  test('is wanted if its browser fills the pool', () => {
    pool.roster.add('wl_1', DEFAULTS, 'a');
    pool.roster.add('wl_2', DEFAULTS, 'a');
    expect(unwanted()).toEqual(['wl_2', 'wl_1']);
    pool.size.target = 1;
    expect(unwanted()).toEqual(['wl_2']);
    pool.size.target = 2;
    expect(unwanted()).toEqual([]);
    pool.isDraining = true;
    expect(unwanted()).toEqual(['wl_2', 'wl_1']);
  });

  test('is no matter of launches that the pool began for itself', () => {
    pool.roster.add('wl_1', DEFAULTS, null);
    expect(unwanted()).toEqual([]);
  });
});
