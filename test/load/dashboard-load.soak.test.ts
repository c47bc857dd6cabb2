import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { summarize } from '#test/bench/samples.ts';
import { startBusyService, type BusyService } from '#test/support/dashboard/busy-service.ts';
import {
  countObjectUrls,
  heldBy,
  watchFrames,
  type Held,
} from '#test/support/dashboard/watch-page.ts';
import { isSoak, soakOr } from '#test/support/soak.ts';

/** The short form finds what grows with each event or page; only the soak judges frames. */
const LOAD = soakOr({ sessions: 10_000, seconds: 600 }, { sessions: 1_000, seconds: 30 });
const EVENTS_PER_SECOND = 50;
const FRAME_P95_MS_MAX = 32;
/** How far the heap may rise after it has filled: caches of compiled code, rows with more facts. */
const HEAP_RISE_MAX = 1.15;
/** Nodes that live but are in no document: those that the next frame lets go. */
const DETACHED_MAX = 50;
const LISTENERS_MAX = 50;
/** After these the heap has filled: the second and third bring a third of the rise of ten. */
const WARM_VISITS = 3;
/** How often all pages are looked at after the first looks, however slow the machine is. */
const VISITS_MIN = 5;
/** For how long the list is watched at a visit. CI is brief: it does not judge the frames. */
const WATCH_MS = soakOr(4_000, 1_000);
/** The first looks fill the heap, so they are as long in either form. */
const WARM_WATCH_MS = 4_000;

describe(`the dashboard with ${LOAD.sessions} sessions, open for ${LOAD.seconds} s`, () => {
  let busy: BusyService;
  let begin: Held;
  let end: Held;
  let gaps: number[] = [];
  let visits = 0;
  let rate: number;

  beforeAll(
    async () => {
      busy = await startBusyService(LOAD.sessions);
      await using tab = await busy.open('/');
      const { page } = tab;
      await countObjectUrls(page);
      const over = new AbortController();
      const working = busy.work(EVENTS_PER_SECOND, over.signal);
      working.catch(() => undefined); // rethrown below
      const until = performance.now() + LOAD.seconds * 1000;
      for (let visit = 0; visit < WARM_VISITS; visit += 1) await visitAll(page, WARM_WATCH_MS);
      begin = await heldBy(page);
      for (; visits < VISITS_MIN || performance.now() < until; visits += 1)
        gaps = [...gaps, ...(await visitAll(page, WATCH_MS))];
      end = await heldBy(page);
      over.abort();
      rate = await working;
      expect(tab.faults).toEqual([]);
    },
    LOAD.seconds * 1000 + 600_000,
  );
  afterAll(() => busy?.[Symbol.asyncDispose]());

  it('gets the events that it is measured with', async ({ annotate }) => {
    await annotate(`${rate.toFixed(0)} events a second, ${visits} visits`);
    expect(rate).toBeGreaterThan(0);
    if (isSoak) expect(rate).toBeGreaterThanOrEqual(EVENTS_PER_SECOND);
  });

  it('holds as much memory at the end as after the first looks at its pages', async ({
    annotate,
  }) => {
    const mib = ({ heapBytes }: Held) => (heapBytes / 2 ** 20).toFixed(1);
    await annotate(`heap ${mib(begin)}, then ${mib(end)} MiB`);
    await annotate(`listeners ${begin.listeners}, then ${end.listeners}`);
    expect(end.heapBytes).toBeLessThanOrEqual(HEAP_RISE_MAX * begin.heapBytes);
    expect(end.listeners).toBeLessThanOrEqual(begin.listeners + LISTENERS_MAX);
  });

  it('leaves no nodes and no object URLs behind', async ({ annotate }) => {
    const detached = ({ nodes, attached }: Held) => nodes - attached;
    await annotate(`detached nodes ${detached(begin)}, then ${detached(end)}`);
    expect(detached(end)).toBeLessThanOrEqual(detached(begin) + DETACHED_MAX);
    expect(end.objectUrls).toBeLessThanOrEqual(begin.objectUrls);
  });

  it('shows frames of at most 32 ms, p95', async ({ annotate }) => {
    const { p95, count } = summarize(gaps);
    await annotate(`p95 ${p95.toFixed(1)} ms of ${count} frames`);
    expect(count).toBeGreaterThan(0);
    if (isSoak) expect(p95).toBeLessThanOrEqual(FRAME_P95_MS_MAX);
  });
});

/** The wall, a session, and the list, which scrolls and then is still. */
async function visitAll(page: Page, watchMs: number): Promise<number[]> {
  const menu = page.getByRole('navigation', { name: 'Pages' });
  await menu.getByRole('link', { name: 'Wall' }).click();
  await page.locator('main img').first().waitFor();
  await menu.getByRole('link', { name: 'Sessions', exact: true }).click();
  await page.locator('.space > .row a').first().click();
  await page.locator('.timeline li').first().waitFor();
  await menu.getByRole('link', { name: 'Sessions', exact: true }).click();
  await page.locator('.space > .row').first().waitFor();
  const scrolling = await watchFrames(page, watchMs, true);
  const still = await watchFrames(page, watchMs, false);
  return [...scrolling.gaps, ...still.gaps];
}
