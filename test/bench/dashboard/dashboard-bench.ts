import { fileURLToPath } from 'node:url';
import {
  buildDashboard,
  dashboardFolder,
  firstLoadOf,
} from '#src/start/embedded/build/dashboard.mjs';
import { startBusyService, type BusyService } from '#test/support/dashboard/busy-service.ts';
import type { Dashboard } from '#test/support/dashboard/dashboard.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { watchFrames, type Frames } from '#test/support/dashboard/watch-page.ts';
import { atMost, row, summarize, type Verdict } from '../samples.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FIRST_LOAD_KB_MAX = 170;
const INTERACTIVE_RATIO_MAX = 4;
const FRAME_P95_MS_MAX = 32;
const SESSIONS = 10_000;
const EVENTS_PER_SECOND = 50;
const ROUNDS = 15;
/** The first pages let the API and the browser compile. */
const WARM_UP_ROUNDS = 3;
const WATCH_MS = 20_000;

type Print = (line: string) => void;

/**
 * The dashboard in a real Chromium: the size of its first load; the time until it can be used,
 * beside a page without scripts of the same process; its frames with very many sessions while
 * events come.
 */
export async function benchDashboard(print: Print): Promise<Verdict[]> {
  await buildDashboard(ROOT, print);
  const bytes = await firstLoadOf(dashboardFolder(ROOT));
  print(`first load, compressed: ${bytes} bytes`);
  await using busy = await startBusyService(SESSIONS);
  const { empty, controls, list } = await measureLoads(busy);
  print(`milliseconds${' '.repeat(32)}      p50      p95      p99     n`);
  print(row('an empty page: loaded', summarize(empty)));
  print(row('the first page: takes input', summarize(controls)));
  print(row('the first page: shows its rows', summarize(list)));
  const frames = await measureFrames(busy, print);
  const ratio = summarize(controls).p50 / summarize(empty).p50;
  return [
    atMost('first load, compressed, kB', bytes / 1000, FIRST_LOAD_KB_MAX),
    atMost('first page takes input ÷ empty page, p50', ratio, INTERACTIVE_RATIO_MAX),
    ...frames,
  ];
}

/**
 * Both in turns, each in a context of its own: nothing is cached. The first page takes input once
 * its menu, search and filters are there; its rows come with the first answer of the API.
 */
async function measureLoads(dashboard: Dashboard) {
  const [empty, controls, list] = [[], [], []] as [number[], number[], number[]];
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const loaded = await timeLoad(dashboard, '/api/health', ['body']);
    const first = await timeLoad(dashboard, '/', ['input[type="search"]', '.space > .row a']);
    if (round < WARM_UP_ROUNDS) continue;
    empty.push(...loaded);
    for (const [index, times] of [controls, list].entries()) times.push(first[index] ?? Infinity);
  }
  return { empty, controls, list };
}

/**
 * For each element the time from the begin of the navigation until it is there, the page has loaded
 * and has shown the next frame.
 */
async function timeLoad(
  dashboard: Dashboard,
  path: string,
  selectors: readonly string[],
): Promise<number[]> {
  await using tab = await dashboard.open('about:blank', { origin: '', key: null });
  const { page } = tab;
  const shown = (selector: string) => `new Promise((resolve) => {
    requestAnimationFrame(function look() {
      const element = document.querySelector(${JSON.stringify(selector)});
      if (document.readyState !== 'complete' || element === null) requestAnimationFrame(look);
      else requestAnimationFrame(() => resolve(performance.now()));
    });
  })`;
  await page.addInitScript(`globalThis.shown = Promise.all([${selectors.map(shown).join()}])`);
  const { apiUrl } = dashboard.service;
  await page.goto(`${apiUrl}${path}${path === '/' ? `#key=${DEV_KEY}` : ''}`);
  return await page.evaluate<number[]>('shown');
}

async function measureFrames(busy: BusyService, print: Print): Promise<Verdict[]> {
  await using tab = await busy.open('/');
  const { page } = tab;
  await page.getByText(/^\d+ of \d{5}/).waitFor();
  const over = new AbortController();
  const working = busy.work(EVENTS_PER_SECOND, over.signal);
  const still = await watchFrames(page, WATCH_MS, false);
  const scrolling = await watchFrames(page, WATCH_MS, true);
  over.abort();
  const rate = await working;
  print(`${SESSIONS} sessions, ${rate.toFixed(0)} events a second`);
  print(framesRow('frames, still', still));
  print(framesRow('frames, scrolling', scrolling));
  return [
    atMost('frames while still, p95, ms', summarize(still.gaps).p95, FRAME_P95_MS_MAX),
    atMost('frames while scrolling, p95, ms', summarize(scrolling.gaps).p95, FRAME_P95_MS_MAX),
  ];
}

function framesRow(name: string, { gaps, longTasks }: Frames): string {
  const longest = Math.max(0, ...longTasks).toFixed(0);
  return `${row(name, summarize(gaps))}; ${longTasks.length} tasks over 50 ms, longest ${longest}`;
}
