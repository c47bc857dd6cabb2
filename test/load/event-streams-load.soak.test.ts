import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAndStop, measureFeed, startApart, type FeedFigures } from '#test/bench/feed.ts';
import { openStream, type Block, type Stream } from '#test/support/clients/sse-client.ts';
import { eventually, type RunningService } from '#test/support/service/service.ts';
import { isSoak, soakOr } from '#test/support/soak.ts';

/**
 * The short form finds events that are lost, doubled or out of order, and readers that are not cut
 * off. Only the soak judges memory over time, and latency, which needs a machine to itself.
 */
const LOAD = soakOr(
  { clients: 200, createsPerSecond: 10, seconds: 300 },
  { clients: 50, createsPerSecond: 10, seconds: 20 },
);
/** append → client ÷ a publish of NATS itself to a subscriber beside the clients, p50 of both. */
const RATIO_MAX = 10;
/** The time that the API gives a client that it cuts off to take the rest. */
const LINGER_MS = 10_000;
/** The line in its log may be that much later than the cut-off. */
const LOGGED_WITHIN_MS = 1_000;
/** How far the heap rises between two collections, in a process of some 300 MB. */
const HEAP_WAVE_MB = 80;

describe(`${LOAD.clients} streams over ${LOAD.seconds} s of ${LOAD.createsPerSecond} creates a second`, () => {
  let apart: Awaited<ReturnType<typeof startApart>>;
  let figures: FeedFigures;
  let cutOff: CutOff;

  beforeAll(
    async () => {
      apart = await startApart();
      using unread = await openStream(`${apart.api.apiUrl}/api/events`);
      unread.pause();
      const cuttingOff = readCutOff(apart.api, unread);
      cuttingOff.catch(() => undefined); // reported by floodUntil
      figures = await measureFeed(apart, LOAD);
      cutOff = await floodUntil(apart.api, cuttingOff);
    },
    LOAD.seconds * 1_000 + 600_000,
  );
  afterAll(() => apart?.[Symbol.asyncDispose]());

  it('get each event once and in order', async ({ annotate }) => {
    await annotate(`${figures.events} events`);
    expect(figures.events).toBeGreaterThan(4 * LOAD.createsPerSecond * LOAD.seconds);
    expect(figures.wrong).toBe(0);
  });

  it('are not slowed by one client that reads nothing', async ({ annotate }) => {
    const { append, core, ratio, ratiosByTenth } = figures;
    const tenths = ratiosByTenth.map((one) => one.toFixed(1)).join(' ');
    await annotate(
      `append → client p50 ${append.p50.toFixed(1)} ms, NATS ${core.p50.toFixed(1)} ms`,
    );
    await annotate(`ratio ${ratio.toFixed(1)}, by tenths of the time ${tenths}`);
    expect(append.count).toBeGreaterThan(LOAD.clients * LOAD.seconds);
    if (isSoak) expect(ratio).toBeLessThanOrEqual(RATIO_MAX);
  });

  it('end with slow_reader for that client', () => {
    const last = { event: 'end', data: expect.stringContaining('slow_reader') };
    // A client that takes longer finds its connection closed.
    if (cutOff.tookMs > LINGER_MS - LOGGED_WITHIN_MS) expect(cutOff.blocks).toBeGreaterThan(0);
    else expect(cutOff).toMatchObject({ isComplete: true, last });
  });

  it('leave the memory of the API process at one level', async ({ annotate }) => {
    const { memoryMb } = figures;
    await annotate(`resident MB by tenths of the time ${memoryMb.join(' ')}`);
    expect(memoryMb).not.toContain(0);
    if (!isSoak) return;
    // Caches and the heap fill at first; after that the heap rises and falls with the collector.
    const [middle, last] = [memoryMb.slice(3, 6), memoryMb.slice(-3)];
    expect(Math.max(...last)).toBeLessThanOrEqual(Math.max(...middle) + HEAP_WAVE_MB);
  });
});

/** How a stream ended for a client, so long after the API had cut it off. */
type CutOff = { last: Block | undefined; isComplete: boolean; blocks: number; tookMs: number };

/** Reads the stream at once when the API cuts it off. */
async function readCutOff(api: RunningService, stream: Stream): Promise<CutOff> {
  const isCutOff = () => api.output().includes('"reason":"slow_reader"');
  const withinMs = LOAD.seconds * 1_000 + 300_000;
  await eventually(isCutOff, 'the API cuts off a client that reads nothing', withinMs);
  const cutOffAt = /"time":(\d+).*"reason":"slow_reader"/.exec(api.output())?.[1];
  stream.resume();
  await stream.ended;
  const tookMs = Date.now() - Number(cutOffAt);
  const { blocks } = stream;
  return { last: blocks.at(-1), isComplete: stream.isComplete(), blocks: blocks.length, tookMs };
}

/** Adds events until `done` settles: for a client that reads nothing, the kernel buffers 40 MB. */
async function floodUntil<Value>(api: RunningService, done: Promise<Value>): Promise<Value> {
  const settled = new AbortController();
  const settle = () => settled.abort();
  done.then(settle, settle);
  while (!settled.signal.aborted) await createAndStop(api, 60, performance.now() + 1_000, 1_024);
  return done;
}
