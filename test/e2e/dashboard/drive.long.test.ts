import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { connect } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient } from '#src/apps/client/client.ts';
import { note, notesOf, record } from '#test/support/clients/recording-page.ts';
import { startDashboard, type Dashboard } from '#test/support/dashboard/dashboard.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';

/** What a person does with a real browser from the page of its session. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

let dashboard: Dashboard;
let id: string;

beforeAll(async () => {
  dashboard = await startDashboard({ BROWSERS: 'process', POOL_MIN_IDLE: '1', POOL_MAX_IDLE: '1' });
  ({ id } = await dashboard.create({ session_name: 'driven' }));
  const path = `/api/sessions/${id}`;
  const isActive = async () =>
    (await dashboard.service.request('GET', path)).body.status === 'active';
  await eventually(isActive, 'it is active');
});
afterAll(() => dashboard?.[Symbol.asyncDispose]());

/** The text that a click on Copy leaves in the clipboard. */
async function copied(page: Page, title: string): Promise<string> {
  const block = page.locator('figure.copy').filter({ hasText: new RegExp(`^${title}`) });
  await block.getByRole('button').click();
  await block.getByRole('button', { name: 'Copied' }).waitFor();
  return page.evaluate<string>('navigator.clipboard.readText()');
}

it('the code of its page works as it is copied', async () => {
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page } = tab;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByText('Code that drives it').click();
  for (const title of ['Playwright', 'Puppeteer']) {
    const code = ['--input-type=module', '-e', await copied(page, title)];
    const { stdout } = await run(process.execPath, code, { cwd: ROOT });
    expect([title, stdout]).toEqual([title, 'It works\n']);
  }
  const command = await copied(page, 'curl');
  const { stdout } = await run('sh', ['-c', command], {
    env: { ...process.env, API_KEY: DEV_KEY },
  });
  expect(JSON.parse(stdout)).toMatchObject({ id, status: 'active' });
  // Playwright for Python is not among the packages of this project: its syntax is checked.
  const check = 'import ast, sys; ast.parse(sys.argv[1])';
  await run('python3', ['-c', check, await copied(page, 'Python')]);
});

it('its screen is shown in the page', async () => {
  await using tab = await dashboard.open(`/sessions/${id}`);
  const { page, faults } = tab;
  await page.getByRole('button', { name: 'Show the live screen' }).click();
  const screen = page.getByRole('region', { name: 'Live screen' });
  await screen.getByText('Connected', { exact: true }).waitFor();
  // Pixels of a real screen, not the empty canvas.
  const colours = `(() => {
    const canvas = document.querySelector('.screen canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  })()`;
  await expect.poll(() => page.evaluate<number>(colours)).toBeGreaterThan(1);
  await page.screenshot({ path: join(ROOT, '.tools/pictures/session-real-screen.png') });
  expect(faults).toEqual([]);
});

it('a person takes the browser on the page of hand-offs, and gives it back to automation', async () => {
  const client = createClient({ url: dashboard.service.apiUrl, apiKey: DEV_KEY });
  const session = await client.sessions.get(id);
  const automation = await connect({
    browserWSEndpoint: session.cdp_url ?? '',
    defaultViewport: null,
  });
  const [driven] = await automation.pages();
  if (driven === undefined) throw new Error('the browser has no page');
  await record(driven);
  // The person sees what the key did.
  const show = "document.body.style.background = '#080'";
  await driven.evaluate(`addEventListener('keydown', () => (${show}))`);
  await using tab = await dashboard.open('/handoffs');
  const { page, faults } = tab;
  const waiting = session.handoff({ instructions: 'Press b.', timeout: '5m' });
  await page.getByRole('listitem').filter({ hasText: 'Press b.' }).getByRole('button').click();
  const screen = page.getByRole('region', { name: 'Live screen' });
  await screen.getByText('Connected', { exact: true }).waitFor();

  const sent = Array.from({ length: 20 }, (_, n) => `command ${n}`);
  let answered = 0;
  const answers = sent.map(async (text) => {
    await note(driven, text);
    answered += 1;
  });
  // A click into the page gives it the keyboard, as in any browser.
  await screen.locator('canvas').first().click();
  await page.keyboard.press('b');
  const middle = `(() => {
    const canvas = document.querySelector('.screen canvas');
    const at = [canvas.width / 2, canvas.height / 2];
    return [...canvas.getContext('2d').getImageData(...at, 1, 1).data].join();
  })()`;
  await expect.poll(() => page.evaluate(middle)).toBe('0,136,0,255');
  await page.screenshot({ path: join(ROOT, '.tools/pictures/handoffs-real-screen.png') });
  await page.getByLabel('Yes').check();
  await page.getByLabel('Note for the automation').fill('Pressed.');
  expect(answered).toBe(0);
  await page.getByRole('button', { name: 'Give it back' }).click();

  expect(await waiting).toMatchObject({ status: 'completed', success: true, note: 'Pressed.' });
  await page.getByRole('heading', { name: 'Nothing waits for a person' }).waitFor();
  await Promise.all(answers);
  expect(await notesOf(driven)).toEqual(['begin', 'b', ...sent]);
  expect(faults).toEqual([]);
  await automation.disconnect();
});
