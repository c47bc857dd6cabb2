import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inspect, startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { bss, bssWith } from '#test/support/clients/command-line.ts';
import { eventually } from '#test/support/service/service.ts';
import { looks } from './looks.ts';

/** A real browser is recorded, driven, and watched afterwards. */

const RED = [220, 30, 30];
const GREEN = [20, 160, 60];
/** A point of the page, in the middle of the screen of 1280 x 800. */
const POINT = { x: 640, y: 500 };

let dashboard: Dashboard;
let id: string;
/** When the page had each colour, seconds from the first segment. */
const shownAt: { colour: number[]; at: number }[] = [];
beforeAll(async () => {
  dashboard = await startDashboard({
    BROWSERS: 'process',
    POOL_MIN_IDLE: '1',
    POOL_MAX_IDLE: '1',
    POOL_MAX: '2',
  });
  ({ id } = await dashboard.create({ record: true, session_name: 'recorded' }));
  const { body } = await dashboard.service.request('GET', `/api/sessions/${id}`);
  const driver = await chromium.connectOverCDP(body.cdp_url);
  const [page] = driver.contexts()[0]?.pages() ?? [];
  if (page === undefined) throw new Error('the browser has no page');
  for (const colour of [RED, GREEN, RED]) {
    const setAt = Date.now();
    await page.evaluate(`document.documentElement.style.background = 'rgb(${colour.join()})'`);
    // The change is in a segment once that is stored, with the time of its last message.
    const at = await eventually(async () => {
      const last = (await recording()).segments.at(-1);
      const endedAt = Date.parse(last?.ended_at ?? '');
      return endedAt > setAt ? endedAt : null;
    }, 'the change is stored');
    shownAt.push({ colour, at });
  }
  await driver.close();
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

type Index = {
  started_at: string;
  segments: { ended_at: string; recorded: boolean }[];
  gaps: object[];
};
const recording = async () =>
  (await dashboard.service.request('GET', `/api/sessions/${id}/recording`)).body as Index;

it.each(looks)(
  '%s: it is played, and shows what the screen showed at each moment',
  async (look) => {
    await using tab = await dashboard.open(`/sessions/${id}`, look);
    const { page, faults } = tab;
    await page.getByRole('button', { name: 'Play the recording' }).click();
    const slider = page.getByRole('slider', { name: 'Moment of the recording' });
    await slider.waitFor();
    const from = Date.parse((await recording()).started_at);
    const picture = `document.querySelector('.recording canvas').getContext('2d')`;
    const colourAt = () =>
      page.evaluate(`[...${picture}.getImageData(${POINT.x}, ${POINT.y}, 1, 1).data]`);
    // To and fro: from the last whole screen before the moment, and on from where it is.
    for (const { colour, at } of [...shownAt, ...shownAt.toReversed()]) {
      await slider.fill(String(Math.ceil((at - from) / 100) * 100));
      await expect.poll(colourAt).toEqual([...colour, 255]);
    }
    await slider.scrollIntoViewIfNeeded();
    await inspect(page, 'recording', look);
    expect(faults).toEqual([]);
  },
);

it('plays by itself, faster, and with the keyboard alone', async () => {
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page, faults } = tab;
  await page.getByRole('button', { name: 'Play the recording' }).press('Enter');
  const slider = page.getByRole('slider', { name: 'Moment of the recording' });
  await page.getByLabel('Speed').selectOption('8');
  await page.getByRole('button', { name: 'Play', exact: true }).press('Enter');
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  expect(Number(await slider.inputValue())).toBeGreaterThan(0);
  await slider.press('Home');
  await expect.poll(() => slider.inputValue()).toBe('0');
  await page.getByLabel('Go to').selectOption({ label: '0:00 session.activated' });
  expect(faults).toEqual([]);
});

it('is what the event log says once the session has ended, and is exported', async () => {
  await using folder = await scratchDir();
  const file = join(folder.path, 'recording.fbs');
  const session = `/api/sessions/${id}`;
  await dashboard.service.request('DELETE', session);
  // Its last segment is stored before its last event, and until then all others may be recorded.
  const status = async () => (await dashboard.service.request('GET', session)).body.status;
  await eventually(async () => (await status()) === 'stopped', 'it has stopped');
  await eventually(
    async () => (await recording()).segments.every(({ recorded }) => recorded),
    'its events are stored',
  );
  const verified = await bss(dashboard.service, 'recording', 'verify', id, '--json');
  expect(verified.stderr).toBe('');
  expect(JSON.parse(verified.stdout)).toMatchObject({ unrecorded: 0, gaps: 0, findings: [] });
  await bss(dashboard.service, 'recording', 'export', id, '--out', file);
  expect((await readFile(file)).subarray(0, 12).toString()).toBe('FBS 001.000\n');
});

it('is exported as a video by ffmpeg, which is named where it is missing', async () => {
  await using folder = await scratchDir();
  const file = join(folder.path, 'recording.mp4');
  const made = await bss(dashboard.service, 'recording', 'export', id, '--out', file);
  expect([made.stderr, made.code]).toEqual(['', 0]);
  const shown = ['-show_entries', 'stream=codec_name,width,height,nb_frames', '-of', 'json'];
  const probe = await promisify(execFile)('ffprobe', ['-v', 'error', ...shown, file]);
  const { streams } = JSON.parse(probe.stdout) as { streams: Record<string, unknown>[] };
  expect(streams).toMatchObject([{ codec_name: 'h264', width: 1280, height: 800 }]);
  // Ten a second, of a session of some seconds; a still screen takes no more than two.
  expect(Number(streams[0]?.['nb_frames'])).toBeGreaterThan(10);
  const without = await bssWith(
    { DATA_DIR: dashboard.service.dataDir, PATH: folder.path },
    ...['recording', 'export', id, '--out', file],
  );
  expect(without.code).not.toBe(0);
  expect(without.stderr).toContain('ffmpeg is needed for a video');
});
