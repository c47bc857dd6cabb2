import { expect, it } from 'vitest';
import { createAndStop, measureFeed, startApart } from '#test/bench/feed.ts';
import { row } from '#test/bench/samples.ts';
import type { RunningService } from '#test/support/service/service.ts';
import { openStream, type Block } from '#test/support/clients/sse-client.ts';

/** As long as was promised; shorter by hand. */
const SECONDS = Number(process.env['FEED_LOAD_SECONDS'] ?? 300);
const LOAD = { clients: 200, createsPerSecond: 10, seconds: SECONDS };
/** append → client ÷ a publish of NATS itself to a subscriber beside the clients, p50 of both. */
const RATIO_MAX = 10;
/** The kernel takes up to 40 MB for who reads nothing: what is short of that is sent at the end. */
const FLOOD_SECONDS_MAX = 180;
/** How far the heap goes up between two collections, in a process of some 300 MB. */
const HEAP_WAVE_MB = 80;

it(`200 streams hear ${SECONDS} s of 10 creates a second, each event once and in order`, async () => {
  await using apart = await startApart();
  const { api } = apart;
  using stopped = await openStream(`${api.apiUrl}/api/events`);
  stopped.pause();
  const resumed = new AbortController();
  const cutOff = resumeOnceCutOff(api, stopped, resumed.signal);
  const figures = await measureFeed(apart, LOAD);
  for (let second = 0; second < FLOOD_SECONDS_MAX && !isCutOff(api); second += 1)
    await createAndStop(api, 20, performance.now() + 1_000, 1_024);
  resumed.abort();
  const { core, append, ratio, ratiosByTenth, events, memoryMb } = figures;
  const tenths = ratiosByTenth.map((one) => one.toFixed(1));
  process.stdout.write(
    `${row('NATS itself: publish → subscriber', core)}\n${row('append → client', append)}\n` +
      `ratio ${ratio.toFixed(1)}; by tenths ${tenths.join(' ')}; ` +
      `${events} events; MB by tenths: ${memoryMb.join(' ')}\n`,
  );
  expect(events).toBeGreaterThan(4 * LOAD.createsPerSecond * SECONDS);
  expect(figures.wrong).toBe(0);
  expect(await cutOff).toMatchObject({
    event: 'end',
    data: expect.stringContaining('slow_reader'),
  });
  // All the time one of the streams was not read: it slowed nobody.
  expect(ratio).toBeLessThanOrEqual(RATIO_MAX);
  // Caches and the heap fill at first; after that it goes up and down with the collector.
  const [middle, last] = [memoryMb.slice(3, 6), memoryMb.slice(-3)];
  expect(Math.max(...last)).toBeLessThanOrEqual(Math.max(...middle) + HEAP_WAVE_MB);
});

/** Its last word; read at once, for the server waits 10 s and no longer. */
async function resumeOnceCutOff(
  api: RunningService,
  stream: Awaited<ReturnType<typeof openStream>>,
  signal: AbortSignal,
): Promise<Block | undefined> {
  while (!isCutOff(api) && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 50));
  stream.resume();
  if (!isCutOff(api)) throw new Error('who reads nothing is never cut off');
  await stream.ended;
  return stream.blocks.at(-1);
}

function isCutOff(api: RunningService): boolean {
  return api.output().includes('"reason":"slow_reader"');
}
