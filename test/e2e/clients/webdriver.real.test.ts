import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Builder, By, until, type WebDriver } from 'selenium-webdriver';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import {
  readSession,
  startRealService,
  type RealService,
} from '#test/support/service/real-session.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { openFormSite, type FormSite } from '#test/support/clients/form-site.ts';

/** The types have another file for it than the package. */
const { FileDetector } = createRequire(import.meta.url)(
  'selenium-webdriver/remote',
) as typeof import('selenium-webdriver/remote.js');

const logInspector = createRequire(import.meta.url)(
  'selenium-webdriver/bidi/logInspector',
) as typeof import('selenium-webdriver/bidi/logInspector.js');

/** The types lack them. */
type Downloads = {
  getDownloadableFiles(): Promise<string[]>;
  downloadFile(name: string, folder: string): Promise<void>;
  deleteDownloadableFiles(): Promise<void>;
};

/** Selenium's own client at /wd/hub of the whole service, with real browsers. */
let service: RealService;
let site: FormSite;
beforeAll(async () => {
  service = await startRealService({ POOL_MIN_IDLE: '1' });
  site = await openFormSite();
});
afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
});

/** The address with the key as its password, as Selenium's clients take it. */
function hub(key = DEV_KEY): string {
  const url = new URL('/wd/hub', service.apiUrl);
  return url.href.replace('://', `://user:${key}@`);
}

/** A driver that quits at the end of the test. */
async function start(capabilities: Record<string, unknown> = {}): Promise<WebDriver> {
  const wanted = { browserName: 'chrome', ...capabilities };
  const driver = await new Builder().usingServer(hub()).withCapabilities(wanted).build();
  onTestFinished(() => driver.quit().catch(() => undefined));
  return driver;
}

async function sessionOf(driver: WebDriver) {
  const known = (await driver.getCapabilities()).get('bss:session') as { id: string };
  return readSession(service, known.id);
}

/** Sends a command as a client would that speaks W3C alone. */
async function send(method: string, path: string, body?: object, key: string | null = DEV_KEY) {
  const answer = await fetch(`${service.apiUrl}/wd/hub${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { value } = (await answer.json()) as { value: Record<string, unknown> };
  return { status: answer.status, headers: answer.headers, value };
}

describe('Selenium', () => {
  test('runs an ordinary script, and its quit stops the session', async () => {
    const driver = await start({ 'bss:options': { session_name: 'by-selenium' } });
    await driver.get(site.url);
    expect(await driver.getTitle()).toBe('Web form');
    await driver.manage().setTimeouts({ implicit: 500 });
    await driver.findElement(By.name('my-text')).sendKeys('Selenium');
    await driver.findElement(By.css('button')).click();
    const message = await driver.wait(until.elementLocated(By.id('message')), 60_000);
    expect(await message.getText()).toBe('Received Selenium');
    expect(await driver.executeScript('return navigator.webdriver')).toBe(true);
    expect((await driver.takeScreenshot()).length).toBeGreaterThan(1_000);
    const session = await sessionOf(driver);
    expect(session).toMatchObject({ session_name: 'by-selenium', idle_timeout: '5m' });
    await driver.quit();
    expect(await readSession(service, session.id)).toMatchObject({ ended_reason: 'user' });
  });

  test('puts a file into a form of the remote browser', async () => {
    const driver = await start();
    await driver.get(site.url);
    await using folder = await scratchDir();
    const file = join(folder.path, 'hello.txt');
    await writeFile(file, 'Hello from afar');
    driver.setFileDetector(new FileDetector());
    await driver.findElement(By.name('my-file')).sendKeys(file);
    const read = 'return document.querySelector("[name=my-file]").files[0].text()';
    expect(await driver.executeScript(read)).toBe('Hello from afar');
    // chromedriver alone would put U+FFFD into the name.
    const quoted = join(folder.path, 'M\u00fcller "1".txt');
    await writeFile(quoted, 'quoted');
    await driver.get(site.url);
    await driver.findElement(By.name('my-file')).sendKeys(quoted);
    const name = 'return document.querySelector("[name=my-file]").files[0].name';
    expect(await driver.executeScript(name)).toBe('M\u00fcller _1_.txt');
    expect(await driver.executeScript(read)).toBe('quoted');
  });

  test('lists, gets and removes what the browser has downloaded', async () => {
    const driver = (await start({ 'se:downloadsEnabled': true })) as WebDriver & Downloads;
    await driver.get(site.url);
    await driver.executeScript(
      `const link = document.createElement('a');
       link.href = URL.createObjectURL(new Blob(['from the page']));
       link.download = 'report.txt';
       link.click();`,
    );
    const names = () => driver.getDownloadableFiles();
    await eventually(async () => (await names()).length === 1, 'the download');
    expect(await names()).toEqual(['report.txt']);
    await using folder = await scratchDir();
    await driver.downloadFile('report.txt', folder.path);
    const file = join(folder.path, 'report.txt');
    await eventually(
      async () => (await readFile(file, 'utf8').catch(() => '')) === 'from the page',
      'the file',
    );
    await driver.deleteDownloadableFiles();
    expect(await names()).toEqual([]);
  });

  test('gets a refusal of a file that is too large, with the bound and another way', async () => {
    const { value } = await send('POST', '/session', { capabilities: {} });
    const path = `/session/${String(value['sessionId'])}`;
    onTestFinished(() => void send('DELETE', path));
    const refused = await send('POST', `${path}/se/file`, { file: 'A'.repeat(33 * 1024 ** 2) });
    expect([refused.status, refused.value['error']]).toEqual([413, 'invalid argument']);
    expect(refused.value['message']).toMatch(/32 MiB.* PUT \/api\/sessions/);
  });
});

describe('Selenium with BiDi', () => {
  test('hears what a page logs, beside its commands', async () => {
    const driver = await start({ webSocketUrl: true, unhandledPromptBehavior: 'ignore' });
    const inspector = await logInspector(driver);
    const heard = Promise.withResolvers<string>();
    await inspector.onConsoleEntry((entry: { text: string }) => heard.resolve(entry.text));
    await driver.get(site.url);
    await driver.executeScript('console.log("from " + document.title); setTimeout(alert)');
    expect(await heard.promise).toBe('from Web form');
    // Both see the same prompt, and neither has closed it.
    const alert = await driver.wait(until.alertIsPresent(), 60_000);
    await alert.accept();
    await inspector.close();
    expect(await driver.getTitle()).toBe('Web form');
  });

  test('has no address where it was not asked for', async () => {
    const driver = await start();
    const capabilities = await driver.getCapabilities();
    expect(capabilities.get('webSocketUrl')).toBeUndefined();
    expect(capabilities.get('bss:session')).toHaveProperty('bidi_url');
  });
});

describe('the door of WebDriver', () => {
  test('begins sessions in the form of W3C, and names the door in their events', async () => {
    const options = { args: ['--headless=new', '--no-sandbox', '--window-size=1000,700'] };
    const alwaysMatch = { browserName: 'Chrome', 'goog:chromeOptions': options };
    const begun = await send('POST', '/session', { capabilities: { alwaysMatch } });
    expect(begun.status).toBe(200);
    const { sessionId, capabilities } = begun.value as {
      sessionId: string;
      capabilities: Record<string, { id: string; cdp_url: string }>;
    };
    expect(capabilities).toMatchObject({ browserName: 'chrome', platformName: 'linux' });
    const { id, cdp_url: cdpUrl } = capabilities['bss:session'] ?? { id: '', cdp_url: '' };
    expect(capabilities['se:cdp']).toBe(cdpUrl);
    const session = await readSession(service, id);
    expect(session).toMatchObject({ headless: true, viewport: { width: 1000, height: 700 } });
    const history = await service.request('GET', `/api/sessions/${id}/history`);
    expect(JSON.stringify(history.body)).toContain('"via":"webdriver"');

    expect((await send('DELETE', `/session/${sessionId}`)).value).toBeNull();
    const late = await send('GET', `/session/${sessionId}/title`);
    expect([late.status, late.value['error']]).toEqual([404, 'invalid session id']);
    // A client whose last window was closed quits all the same.
    expect((await send('DELETE', `/session/${sessionId}`)).status).toBe(200);
  });

  test('asks for an API key and refuses a wrong one', async () => {
    for (const key of [null, 'wrong']) {
      const refused = await send('POST', '/session', { capabilities: {} }, key);
      expect([refused.status, refused.value['error']]).toEqual([401, 'unknown error']);
      expect(refused.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    }
    expect((await send('GET', '/status', undefined, null)).value).toMatchObject({ ready: true });
  });

  test.each([
    [{ browserName: 'firefox' }, /browserName is chrome/],
    [{ platformName: 'windows' }, /platformName is linux/],
    [{ proxy: { proxyType: 'manual', httpProxy: 'a:1' } }, /use egress in bss:options/],
    [{ browserVersion: '1' }, /browserVersion is \d+/],
    [{ 'goog:chromeOptions': { binary: '/bin/sh' } }, /chromeOptions.binary is not possible/],
    [{ 'goog:chromeOptions': { args: ['--proxy-server=x'] } }, /--proxy-server .* egress/],
  ])('says what it cannot give: %j', async (alwaysMatch, message) => {
    const refused = await send('POST', '/session', { capabilities: { alwaysMatch } });
    expect([refused.status, refused.value['error']]).toEqual([500, 'session not created']);
    expect(refused.value['message']).toMatch(message);
    const { body } = await service.request('GET', '/api/sessions?status=active');
    expect(body.sessions).toEqual([]);
  });

  test('has no session of another id, and no command that W3C has not', async () => {
    for (const path of ['/session/x/url', `/session/ses_none.${'0'.repeat(32)}/url`]) {
      const unknown = await send('GET', path);
      expect([unknown.status, unknown.value['error']]).toEqual([404, 'invalid session id']);
    }
    const unknown = await send('GET', '/sessions');
    expect([unknown.status, unknown.value['error']]).toEqual([404, 'unknown command']);
  });

  test('leaves no session behind of a client that leaves while it waits', async () => {
    const body = JSON.stringify({
      capabilities: {
        alwaysMatch: { 'bss:options': { session_name: 'left', timezone: 'Asia/Tokyo' } },
      },
    });
    const headers = { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' };
    const leaving = new AbortController();
    const asked = fetch(`${service.apiUrl}/wd/hub/session`, {
      method: 'POST',
      headers,
      body,
      signal: leaving.signal,
    });
    const open = async () => {
      const { body: answer } = await service.request('GET', '/api/sessions?limit=1');
      return (answer.sessions as { session_name: string; status: string }[])[0];
    };
    await eventually(async () => (await open())?.session_name === 'left', 'the session');
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await eventually(async () => (await open())?.status === 'stopped', 'its end');
  });
});
