import { sleep } from '#src/kernel/async/sleep.ts';
import { startService } from '#test/support/service/service.ts';
import type { Probe } from '../harness/probe.ts';
import { burst, untilIdle } from '../sessions.ts';
import { atMost, row, summarize, type Verdict } from '../samples.ts';
import { bareTogether, type LifecycleOptions } from './bench-lifecycle.ts';

/** Bursts that a pool learns from before it is measured, and the time between two of them. */
const BURSTS_TO_LEARN = 3;
const BURST_EVERY_MS = 20_000;
const TOGETHER = 4;

/**
 * Bursts of concurrent creates on a pool as it is by default, which has to learn how many browsers
 * to keep for them; the first three are not counted. Bare browsers are launched at once between
 * them.
 */
export async function benchBursts(options: LifecycleOptions, probe: Probe): Promise<Verdict[]> {
  const { env, rounds, programs, print } = options;
  const { POOL_MAX: _, ...asShipped } = env;
  await using service = await startService(asShipped);
  await untilIdle(service, 1);
  const [bursts, bare]: [number[], number[]] = [[], []];
  for (let number = 0; number < BURSTS_TO_LEARN + Math.ceil(rounds / 4); number += 1) {
    const nextAt = performance.now() + BURST_EVERY_MS;
    const times = await burst(service, TOGETHER);
    if (number >= BURSTS_TO_LEARN) bursts.push(...times);
    // Between two bursts, when the pool has taken leave of the last and not begun with the next.
    await sleep(BURST_EVERY_MS / 4);
    await probe.take();
    if (number > 0) bare.push(...(await bareTogether(programs)));
    await sleep(nextAt - performance.now());
  }
  const [ours, limit] = [summarize(bursts), summarize(bare)];
  print(row(`bare headless, ${TOGETHER} at once: → first reply`, limit));
  print(row(`create, default pool, ${TOGETHER} at once again: → reply`, ours));
  return [atMost('default pool, 4 at once again p95 ÷ bare', ours.p95 / limit.p50, 0.1)];
}
