import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryFiles } from '#src/features/archive/archive-files.memory.ts';
import { withArchive } from '#src/features/archive/archived-event-store.ts';
import { openOnce } from '#src/features/archive/open-once.ts';
import type { CommandSession } from '#src/apps/cli/command.ts';
import { simulatePoolCommand } from '#src/apps/cli/commands/pool/simulate.ts';
import { UsageError } from '#src/apps/cli/errors.ts';
import { readArguments } from '#src/apps/cli/read-arguments.ts';
import { usageOf } from '#src/apps/cli/usage/all.ts';
import { isRejection } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { noHead, seal } from '#test/support/archive/archive.fixture.ts';
import { iso } from '#test/support/examples.ts';
import { burst } from '#test/support/load/burst.ts';
import { openFleet } from '#test/support/service/fleet.ts';
import { eventually } from '#test/support/service/service.ts';
import { eventsOf, recordOf } from '#test/support/stores/decided-store.ts';

const MINUTE = 60_000;
const T0 = Date.UTC(2026, 0, 5, 9);
const [from, to] = [iso(T0 - MINUTE), iso(T0 + 30 * MINUTE)];
const BURSTS = 4;

/** Bursts of four, every five minutes, on a server that learns them. */
const clock = { now: T0 };
const fleet = await openFleet({ now: () => clock.now });
let serverId = '';
/** Creates that a browser served that was idle before its burst, or while it came. */
let recordedWarm = 0;
beforeAll(async () => {
  const server = await fleet.join({ limits: { launchesAtOnce: 2 } });
  serverId = server.id;
  const idle = async (count: number) =>
    (await fleet.workloads()).filter(({ status }) => status === 'idle').length === count;
  await eventually(() => idle(1), 'one browser is idle');
  for (let come = 1; come <= BURSTS; come += 1) {
    await burst(fleet, clock);
    clock.now += 3 * MINUTE;
    await eventually(() => idle(come > 1 ? 4 : 1), 'the pool is ready for the next burst');
  }
  const types = (await eventsOf(fleet.context.eventStore)).map(({ type }) => type);
  recordedWarm = 16 - types.filter((type) => type === 'session.assigned').length;
  expect(recordedWarm).toBeGreaterThanOrEqual(8);
  clock.now = T0 + 60 * MINUTE;
}, 120_000);
afterAll(() => fleet[Symbol.asyncDispose]());

async function simulate(
  args: readonly string[],
  eventStore: EventStore = fleet.context.eventStore,
) {
  const warnings: string[] = [];
  const session = {
    context: { ...fleet.context, eventStore },
    config: { pool: { minIdle: 1, maxIdle: 4, max: 4 } },
    isJson: true,
    warn: (text: string) => void warnings.push(text),
  } as unknown as CommandSession;
  const action = simulatePoolCommand.read(readArguments(usageOf('pool simulate'), args));
  const result = await action(session);
  if (result === null) throw new Error('no result');
  expect(warnings).toEqual([]);
  return isRejection(result) ? { refusal: result.message } : result;
}

describe('bss pool simulate', () => {
  it('prints what was beside each version of the policy', async () => {
    const { json, text } = (await simulate(['--from', from, '--to', to])) as {
      json: { rows: unknown[] };
      text: string;
    };
    expect(json).toMatchObject({
      ...{ server_id: serverId, unserved: 0, from, to },
      ...{ min_idle: 1, max_idle: 4, max: 4, launches_at_once: 2 },
      rows: [
        { policy: null, creates: 16 },
        // One browser is idle when a burst comes, with policy 3 four from the third burst on.
        { policy: 2, creates: 16, warm: 4 },
        { policy: 3, creates: 16, warm: 10, wait_p50_ms: 0 },
      ],
    });
    expect(json.rows[0]).toMatchObject({ warm: recordedWarm });
    expect(text).toMatch(/^POOL .*\nrecorded +16 .*\npolicy 2 .*\npolicy 3 +16 +62\.5 %/);
    // Sixteen sessions of two minutes in 31.
    for (const row of json.rows)
      expect(row).toMatchObject({ mean_in_use: expect.closeTo(32 / 31) as number });
  });

  it('takes other bounds, and one version of the policy', async () => {
    const asked = ['--from', from, '--to', to, '--policy', '3', '--min', '4', '--max', '8'];
    expect(await simulate(asked)).toMatchObject({
      json: {
        ...{ min_idle: 4, max_idle: 8, max: 8 },
        rows: [{ policy: null }, { policy: 3, warm: 16, wait_p95_ms: 0 }],
      },
    });
  });

  it('reads the archive, and the event store above it', async () => {
    const whole = await simulate(['--from', from, '--to', to]);
    expect(await simulate(['--from', from, '--to', to], await purged())).toEqual(whole);
  });

  it('refuses a time without requests, an unknown server, and several servers', async () => {
    const early = ['--from', '2025-01-01', '--to', '2025-01-02'];
    expect(await simulate(early)).toEqual({ refusal: 'No request was served in this time.' });
    expect(await simulate(['--from', from, '--to', to, '--server', 'srv_other'])).toEqual({
      refusal: 'Server srv_other served none.',
    });
    const other = await fleet.join();
    await fleet.sendServerCommand(serverId, { type: 'Drain' });
    await eventually(
      async () => (await fleet.serverOf(serverId))?.status === 'drained',
      'the first server has drained',
    );
    await fleet.waitForStatus(await fleet.create(), 'active');
    clock.now += MINUTE;
    const names = [serverId, other.id].toSorted().join(', ');
    expect(await simulate(['--from', from])).toEqual({
      refusal: `several servers served requests, name one with --server: ${names}`,
    });
  });

  it('refuses a wrong command line', async () => {
    const wrong = [
      [],
      ['--from', to, '--to', from],
      ['--from', '2025-01-01', '--to', '2025-03-01'],
      ['--from', from, '--policy', '1'],
      ['--from', from, '--max', '0'],
      ['--from', from, '--min', '5', '--max', '4'],
    ];
    for (const args of wrong) await expect(simulate(args)).rejects.toThrow(UsageError);
  });
});

/** The event store without its first half, which is archived. */
async function purged(): Promise<EventStore> {
  const { eventStore } = fleet.context;
  const events = await eventsOf(eventStore);
  const info = await eventStore.info();
  const border = Math.floor(events.length / 2);
  const files = createMemoryFiles();
  await seal(files, events.slice(0, border).map(recordOf), { log: info.id, recordsMax: 40 });
  const log: EventStore = {
    ...eventStore,
    info: async () => ({ ...info, firstSequence: border + 1 }),
    read: (range) => eventStore.read({ ...range, after: Math.max(range.after ?? 0, border) }),
    sequenceBefore: async (time) => Math.max(border, await eventStore.sequenceBefore(time)),
  };
  return withArchive(
    log,
    openOnce(async () => files, noHead),
  );
}
