import type { openFleet } from '#test/support/service/fleet.ts';

const LASTS_MS = 2 * 60_000;

/**
 * Creates four sessions at once and stops them two minutes later.
 * @param clock the fleet's clock, which is set two minutes forward
 * @returns the browsers that served them
 */
export async function burst(
  fleet: Awaited<ReturnType<typeof openFleet>>,
  clock: { now: number },
): Promise<string[]> {
  const ids = await Promise.all([0, 1, 2, 3].map(() => fleet.create()));
  const states = await Promise.all(ids.map((id) => fleet.waitForStatus(id, 'active')));
  clock.now += LASTS_MS;
  for (const id of ids) {
    const stop = { type: 'StopSession', reason: 'user', now: clock.now } as const;
    await fleet.sendSessionCommand(id, stop);
    await fleet.waitForStatus(id, 'stopped');
  }
  return states.map(({ workload }) => workload?.workloadId ?? '');
}
