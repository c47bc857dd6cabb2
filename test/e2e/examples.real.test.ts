import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { launch, type Browser, type Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import {
  onPage,
  pageOf,
  startRealService,
  type RealService,
} from '#test/support/service/real-session.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BLUE = '#1e28c8';
/** The viewer page's state and the words that it shows. */
const SHOWN = 'document.body.dataset.state + ": " + document.body.innerText';

/** What the start prints and the README shows, done as it is written there. */
let service: RealService;
let commands: { create: string; drive: string; watch: string };
let session: { id: string; status: string; cdp_url: string; viewer_url: string };

beforeAll(async () => {
  service = await startRealService();
  const file = join(service.temporary, 'session.json');
  // The log's ready line may reach the terminal before the welcome does.
  await eventually(() => printedCommands().length === 3, 'three printed commands');
  const [create = '', drive = '', watch = ''] = printedCommands().map((line) =>
    line.replace('session.json', file),
  );
  commands = { create, drive, watch };
  await run(create);
  session = JSON.parse(await readFile(file, 'utf8')) as typeof session;
});

afterAll(() => service[Symbol.asyncDispose]());

describe('the three commands that the start prints', () => {
  test('the first creates a session', async () => {
    expect(commands.create).toContain(`"Authorization: Bearer ${DEV_KEY}"`);
    expect(session).toMatchObject({ status: 'active', organization_id: 'dev' });
    const { body } = await service.request('GET', `/api/sessions/${session.id}`);
    expect(body.status).toBe('active');
  });

  test('the second drives its browser', async () => {
    expect(await run(commands.drive)).toMatch(/^Hello from Chrome\/\d+/);
    // The page is the session's own: the next client finds it there.
    expect(await onPage(session, (page) => page.title())).toBe('Hello');
  });

  test('the third prints the address of its viewer, which shows the screen', async () => {
    const printed = await run(commands.watch);
    const [address = ''] = /https?:\/\/\S+/.exec(printed) ?? [];
    expect(address).toBe(session.viewer_url);
    await onPage(session, (page) => page.goto(pageOf(BLUE)));
    await using person = await startPerson();
    const page = await person.browser.newPage();
    await page.goto(address);
    await expect.poll(() => page.evaluate(SHOWN), { timeout: 60_000 }).toMatch(/^connected: /);
    await expect.poll(() => paintedWith(page, BLUE)).toBeGreaterThan(0.5);
    // The screen has the rest of the window, too: the page is not all of one colour by mistake.
    expect(await paintedWith(page, BLUE)).toBeLessThan(1);
  });
});

test('the README shows the script that the second runs', async () => {
  const script = await readFile(join(ROOT, 'test/examples/drive.mjs'), 'utf8');
  const code = script.split('\n').filter((line) => !line.startsWith('//'));
  expect(code.filter(Boolean).length).toBeLessThanOrEqual(10);
  expect(await readFile(join(ROOT, 'README.md'), 'utf8')).toContain(code.join('\n').trim());
});

test('Playwright connects by the WebSocket address and by the HTTP address', async () => {
  const ticket = session.cdp_url.split('/').at(-1);
  const http = service.runtime.gateway_ws_url?.replace('ws:', 'http:');
  for (const address of [session.cdp_url, `${http}/devtools/${ticket}`]) {
    const browser = await chromium.connectOverCDP(address);
    const [context] = browser.contexts();
    const [page] = context?.pages() ?? [];
    await page?.goto(`data:text/html,<title>by ${new URL(address).protocol}</title>`);
    expect(await page?.title()).toBe(`by ${new URL(address).protocol}`);
    await browser.close();
  }
  // Closing an attached browser lets go of it; the session stays.
  const { body } = await service.request('GET', `/api/sessions/${session.id}`);
  expect(body.status).toBe('active');
});

function printedCommands(): string[] {
  const lines = service.output().split('\n');
  return lines.map((line) => line.trim()).filter((line) => /^(curl|npm) /.test(line));
}

/** Runs a printed command in the checkout. @returns its stdout */
async function run(command: string): Promise<string> {
  if (command.startsWith('curl ') && spawnSync('curl', ['--version']).status !== 0)
    return sendAsCurl(command);
  const child = spawn('sh', ['-c', command], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, complaint, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  expect([command, code, complaint]).toEqual([command, 0, expect.any(String)]);
  return said;
}

/** The same request on a machine without curl. */
async function sendAsCurl(command: string): Promise<string> {
  const parts = /^curl -s -X (\S+) (\S+) -H "Authorization: ([^"]+)" -o (\S+)$/.exec(command) ?? [];
  const [, method = '', url = '', authorization = '', file = ''] = parts;
  const answer = await fetch(url, { method, headers: { authorization } });
  await writeFile(file, await answer.text());
  return '';
}

/** The browser of the person who watches. */
async function startPerson(): Promise<{ browser: Browser } & AsyncDisposable> {
  const browser = await launch({
    executablePath: process.env['CHROMIUM'] ?? '',
    args: ['--no-sandbox', '--disable-gpu'],
    acceptInsecureCerts: true,
    // For one that hangs: a busy machine takes longer than the usual 30 s.
    timeout: 120_000,
  });
  return { browser, [Symbol.asyncDispose]: () => browser.close() };
}

/** The share of the viewer's canvas that has that colour. */
async function paintedWith(page: Page, colour: string): Promise<number> {
  const wanted = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return Number(
    await page.evaluate(`(() => {
      const canvas = document.querySelector('#screen canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const wanted = [${wanted.join()}];
      let painted = 0;
      for (let at = 0; at < data.length; at += 4)
        if (wanted.every((value, part) => data[at + part] === value)) painted += 1;
      return painted / (data.length / 4);
    })()`),
  );
}
