import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  connect,
  createClient,
  DownloadRefused,
  setInputFiles,
  type Client,
  type LiveSession,
} from '#src/apps/client/client.ts';
import { bytesOf, startDownloadSite } from '#test/support/clients/download-site.ts';
import { tryInstallPython } from '#test/support/clients/python-packages.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { hasDocker, testNetwork } from '#test/support/servers/docker-engine.ts';
import { startSplitService } from '#test/support/service/split-service.ts';
import { DEV_KEY, startService } from '#test/support/service/service.ts';

/** Files by Playwright, Puppeteer and Playwright for Python; browsers of another process. */

const JAVA = fileURLToPath(new URL('../../examples/playwright-java', import.meta.url));
/** For what hangs: its library is 200 MB. */
const MAVEN = { timeout: 540_000 };
const MB = 1024 ** 2;
const LIMITS = { FILES_FILE_MAX: '250MB', FILES_SESSION_MAX: '300MB', POOL_MIN_IDLE: '1' };
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

let folder: Awaited<ReturnType<typeof scratchDir>>;
let split: Awaited<ReturnType<typeof startSplitService>>;
let site: Awaited<ReturnType<typeof startDownloadSite>>;
let client: Client;
let session: LiveSession;
let python: Promise<string | null>;
beforeAll(async () => {
  folder = await scratchDir();
  await chmod(folder.path, 0o755);
  python = tryInstallPython(folder.path, ['playwright==1.65.2']);
  site = await startDownloadSite();
  split = await startSplitService(LIMITS, { BROWSERS: 'process' });
  client = createClient({ url: split.main.apiUrl, apiKey: DEV_KEY });
  session = await client.sessions.create({ duration: '1h' });
});
afterAll(async () => {
  await python;
  await split?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** Uses the session's browser by Playwright. */
async function driving<Result>(
  { cdp_url }: { cdp_url: string | null },
  use: (page: Page) => Promise<Result>,
): Promise<Result> {
  const browser = await connect(chromium, { cdp_url });
  try {
    const page = await browser.contexts()[0]?.newPage();
    if (page === undefined) throw new Error('no context');
    return await use(page);
  } finally {
    await browser.close();
  }
}

/** Clicks the link of the page, and waits until its download has begun. */
async function begin(page: Page, url: string) {
  await page.goto(url);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('a')]);
  return download;
}

/** A file of so many bytes on this machine. */
async function fileOf(name: string, bytes: number) {
  const path = join(folder.path, name);
  await using file = await open(path, 'w');
  await file.truncate(bytes);
  await file.write('the end', bytes - 7);
  return path;
}

describe('Playwright', () => {
  test('saves two downloads of one name, in any context, and both are there by the API', async () => {
    await driving(session, async (page) => {
      const url = site.pageFor('report.txt', 5);
      const other = await page.context().browser()?.newContext();
      const [first, second] = [
        await begin(page, url),
        await begin((await other?.newPage()) ?? page, url),
      ];
      const to = join(folder.path, 'second.txt');
      expect((await session.saveDownload(second, { to })).name).toBe('report (1).txt');
      expect(await readFile(to)).toEqual(bytesOf(5));
      const saved = await session.saveDownload(first);
      expect([saved.name, Buffer.from(await saved.read())]).toEqual(['report.txt', bytesOf(5)]);
    });
    const files = await session.listFiles();
    expect(files.map(({ name, bytes, origin }) => [name, bytes, origin])).toEqual([
      ['report.txt', 5, 'download'],
      ['report (1).txt', 5, 'download'],
    ]);
    expect(files[0]?.sha256).toBe(sha256(bytesOf(5)));
  });

  test('uploads 200 MB to a browser of another process, and its page reads them', async () => {
    const path = await fileOf('large.bin', 200 * MB);
    const uploaded = await session.uploadFile(path);
    expect(uploaded).toMatchObject({ name: 'large.bin', bytes: 200 * MB, origin: 'upload' });
    await driving(session, async (page) => {
      await page.goto(site.pageFor('x', 1));
      await setInputFiles(page.locator('input'), uploaded);
      expect(await page.evaluate<unknown>(READ_INPUT)).toEqual(['large.bin', 200 * MB, 'the end']);
    });
    const copy = join(folder.path, 'copy.bin');
    const stored = await session.downloadFile('large.bin');
    expect(stored.sha256).toBe(uploaded.sha256);
    await stored.saveTo(copy);
    expect((await stat(copy)).size).toBe(200 * MB);
    expect(sha256(await readFile(copy))).toBe(uploaded.sha256);
  });

  test('is refused what is too large or too much: in the page, the client and the API', async () => {
    const tooMuch = session.uploadFile(new Blob([bytesOf(150 * MB)]), { name: 'more.bin' });
    await expect(tooMuch).rejects.toMatchObject({ error: 'FILES_QUOTA_EXCEEDED', code: 413 });
    await driving(session, async (page) => {
      for (const [name, bytes, reason] of [
        ['too-large.bin', 251 * MB, 'too_large'],
        ['too-much.bin', 150 * MB, 'quota'],
      ] as const) {
        const said = page.waitForEvent('console', (message) => message.text().includes(name));
        const download = await begin(page, site.pageFor(name, bytes));
        const failure = await session.saveDownload(download).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(DownloadRefused);
        expect(failure).toMatchObject({ suggestedFilename: name, reason });
        expect(await download.failure()).toBe('canceled');
        const code = reason === 'quota' ? 'FILES_QUOTA_EXCEEDED' : 'FILE_TOO_LARGE';
        expect((await said).text()).toContain(`was refused. ${code}: `);
      }
    });
    await session.removeFile('large.bin');
    const tooLarge = await fileOf('huge.bin', 251 * MB);
    await expect(session.uploadFile(tooLarge)).rejects.toMatchObject({ error: 'FILE_TOO_LARGE' });
    expect((await session.listFiles()).map(({ name }) => name)).not.toContain('large.bin');
  });
});

const READ_INPUT = `(async () => {
  const [file] = document.querySelector('input').files;
  return [file.name, file.size, await file.slice(-7).text()];
})()`;

test('Puppeteer downloads, and uploads by the path that the API tells', async () => {
  const browser = await connectPuppeteer({ browserWSEndpoint: session.cdp_url ?? '' });
  const cdp = await browser.target().createCDPSession();
  // A folder of this machine, as its users set it.
  await cdp.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: folder.path,
    eventsEnabled: true,
  });
  const begun = new Promise<{ guid: string; suggestedFilename: string }>((resolve) => {
    cdp.once('Browser.downloadWillBegin', resolve);
  });
  const page = await browser.newPage();
  await page.goto(site.pageFor('puppet.txt', 7));
  await page.click('a');
  const file = await session.saveDownload(await begun);
  expect([file.name, Buffer.from(await file.read())]).toEqual(['puppet.txt', bytesOf(7)]);
  const source = new Blob(['sent to the end']);
  const { path } = await session.uploadFile(source, { name: 'ä – 漢.txt' });
  const input = await page.$('input[type=file]');
  await input?.uploadFile(path);
  expect(await page.evaluate(READ_INPUT)).toEqual(['ä – 漢.txt', 15, 'the end']);
  await browser.disconnect();
});

const PYTHON = `
import sys, json, os, urllib.request, urllib.parse, time
from playwright.sync_api import sync_playwright
cdp, api, key, url = sys.argv[1:]
def ask(method, name, body=None):
    path = api + '/files/' + urllib.parse.quote(name) if name else api + '/files'
    headers = {'Authorization': 'Bearer ' + key}
    request = urllib.request.Request(path, data=body, headers=headers, method=method)
    return urllib.request.urlopen(request).read()
def names():
    return [file['name'] for file in json.loads(ask('GET', ''))['files']]
with sync_playwright() as p:
    browser = p.chromium.connect_over_cdp(cdp)
    page = browser.contexts[0].new_page()
    page.goto(url)
    with page.expect_download() as begun:
        page.click('a')
    download = begun.value
    failure = download.failure()
    while download.suggested_filename not in names():
        time.sleep(0.05)
    content = ask('GET', download.suggested_filename)
    path = json.loads(ask('PUT', 'from python.txt', b'sent to the end'))['path']
    session = page.context.new_cdp_session(page)
    element = session.send('Runtime.evaluate', {'expression': "document.querySelector('input')"})
    object_id = element['result']['objectId']
    session.send('DOM.setFileInputFiles', {'files': [path], 'objectId': object_id})
    print(json.dumps([failure, content.decode(), page.evaluate('''${READ_INPUT}''')]))
    browser.close()
`;

test('Playwright for Python downloads and uploads by the API', async ({ skip }) => {
  const interpreter = await python;
  if (interpreter === null) return skip('Playwright for Python could not be installed');
  const api = `${split.main.apiUrl}/api/sessions/${session.id}`;
  const args = ['-c', PYTHON, session.cdp_url ?? '', api, DEV_KEY, site.pageFor('snake.txt', 9)];
  const { stdout } = await promisify(execFile)(interpreter, args);
  expect(JSON.parse(stdout)).toEqual([
    null,
    bytesOf(9).toString(),
    ['from python.txt', 15, 'the end'],
  ]);
});

test(
  'Playwright for Java downloads by the API',
  async () => {
    const run = promisify(execFile);
    const lib = join(folder.path, 'lib');
    await copyFile(join(JAVA, 'pom.xml'), join(folder.path, 'pom.xml'));
    const install = ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${lib}`];
    await run('mvn', install, { ...MAVEN, cwd: folder.path });
    const example = ['-cp', `${lib}/*`, join(JAVA, 'Files.java'), split.main.apiUrl, DEV_KEY];
    // The browser is the session's.
    const env = { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1' };
    const { stdout } = await run('java', example, { ...MAVEN, env });
    expect(stdout.trim()).toBe('ann.txt Hello Ann');
  },
  2 * MAVEN.timeout,
);

describe('a name', () => {
  const put = (name: string) => session.uploadFile(new Blob(['x']), { name });

  test.for(['../../x', '..', '/etc/passwd', 'a\\b', 'a\0b', `${'n'.repeat(252)}.txt`])(
    'as %j is refused',
    async (name) => {
      await expect(put(name)).rejects.toMatchObject({ error: 'INVALID_FILE_NAME', code: 400 });
    },
  );

  test.for(['漢字 – 😀 ñ.txt', `${'ä'.repeat(125)}a.txt`, 'a%2Fb', 'a?b=c#d'.replace('?', '')])(
    'as %j is kept',
    async (name) => {
      const { name: kept } = await put(name);
      expect(kept).toBe(name);
      expect(Buffer.from(await (await session.downloadFile(name)).read()).toString()).toBe('x');
      await session.removeFile(name);
    },
  );

  test.for(['../../evil.txt', '.hidden', `${'n'.repeat(300)}.txt`, 'a\tb\u202Etxt.exe'])(
    'that a page suggests as %j stays in the folder',
    async (suggested) => {
      const { name } = await driving(session, async (page) =>
        session.saveDownload(await begin(page, site.pageFor(suggested, 3))),
      );
      expect(name).not.toMatch(/[/\\\p{Cc}\u202E]|^\./u);
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
      await session.removeFile(name);
    },
  );
});

test('files are there after the end of their session', async () => {
  const before = await session.listFiles();
  await session.stop();
  expect(await session.listFiles()).toEqual(before);
  const file = await session.downloadFile('report (1).txt');
  expect(Buffer.from(await file.read())).toEqual(bytesOf(5));
  await expect(session.uploadFile(new Blob(['x']), { name: 'late' })).rejects.toMatchObject({
    error: 'SESSION_ENDED',
  });
});

test.runIf(hasDocker())('200 MB go into a container, and a download comes out', async () => {
  const network = testNetwork();
  await using service = await startService({
    ...LIMITS,
    BROWSERS: 'docker',
    DOCKER_NETWORK: network,
  });
  const { sessions } = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  await using contained = await sessions.create();
  const uploaded = await contained.uploadFile(await fileOf('large.bin', 200 * MB));
  await driving(contained, async (page) => {
    await page.goto(
      'data:text/html,<input type="file"><a download="out.txt" href="data:,out">get</a>',
    );
    await setInputFiles(page.locator('input'), uploaded);
    expect(await page.evaluate<unknown>(READ_INPUT)).toEqual(['large.bin', 200 * MB, 'the end']);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('a')]);
    const file = await contained.saveDownload(download);
    expect([file.name, Buffer.from(await file.read()).toString()]).toEqual(['out.txt', 'out']);
  });
});
