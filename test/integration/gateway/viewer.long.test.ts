import { connect, type Browser, type Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { SessionLookup } from '#src/roles/gateway/access/session-directory.ts';
import { vncAuthResponse } from '#src/browsers/rfb.ts';
import { openSocket, startTestGateway, until } from '#test/support/gateway.fixture.ts';
import { startRealBrowsers, VNC_PASSWORD } from '#test/support/clients/real-browser.ts';

const SOON = { timeout: 60_000 };

/** Where a German keyboard has ü, ö, ä and ß, and a key without a position. */
const POSITIONS = ['BracketLeft', 'Semicolon', 'Quote', 'Minus', ''];

/** One browser is the session's, the other is the viewer's. */
let browsers: Awaited<ReturnType<typeof startRealBrowsers>>;
let site: Awaited<ReturnType<typeof startTestGateway>>;
let person: Browser;
let active: SessionLookup;
let pageUrl = '';

beforeAll(async () => {
  browsers = await startRealBrowsers(2);
  site = await startTestGateway();
  const [watched, watching] = browsers.running;
  if (watched === undefined || watching === undefined) throw new Error('no browsers');
  active = { status: 'active', cdp: watched.cdp, vnc: watched.vnc };
  site.directory.set('s1', active);
  pageUrl = `${site.http}/vnc/${site.tickets.issue('vnc', 'org', 's1')}/`;
  const { host, port, path } = watching.cdp;
  person = await connect({ browserWSEndpoint: `ws://${host}:${port}${path}` });
  const driver = await connect({
    browserWSEndpoint: site.cdpUrl('s1'),
    defaultViewport: null,
  });
  const [page] = await driver.pages();
  await page?.goto('data:text/html,<body style="background:rgb(200,30,40)">');
  await driver.disconnect();
});

beforeEach(() => {
  site.directory.set('s1', active);
});

afterAll(async () => {
  await person.disconnect();
  await site[Symbol.asyncDispose]();
  await browsers[Symbol.asyncDispose]();
});

test('an RFB client reaches the session’s screen with its password only', async () => {
  expect(await greet(VNC_PASSWORD)).toMatchObject({ result: 0, width: 800, height: 600 });
  const refused = { result: 1, closed: { code: 4018, reason: 'wrong_password' } };
  expect(await greet('wrong123')).toMatchObject(refused);
});

test('many wrong passwords do not lock the session’s screen', async () => {
  for (let wrong = 0; wrong < 12; wrong += 1) expect((await greet('wrong123')).result).toBe(1);
  expect((await greet(VNC_PASSWORD)).result).toBe(0);
});

describe('the viewer page', () => {
  test('takes the password from its address and removes it there', async () => {
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    expect(page.url()).toBe(pageUrl);
    await expect.poll(() => colourOfScreen(page)).toBe('200,30,40');
    await page.reload();
    await reaches(page, 'connected');
    await page.close();
  });

  test('connects in a browser whose video decoder does not answer', async () => {
    const page = await person.newPage();
    await page.evaluateOnNewDocument(
      'VideoDecoder.isConfigSupported = () => new Promise(() => {})',
    );
    await page.goto(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    await page.close();
  });

  test('loads again when one of its files could not be fetched', async () => {
    const page = await person.newPage();
    const failures = await failRequests(page, 'rfb.js', 2);
    await page.goto(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    expect(failures()).toBe(2);
    await page.close();
  });

  test('says that its files cannot be fetched, and loads again when asked to', async () => {
    const page = await person.newPage();
    const failures = await failRequests(page, 'rfb.js', 6);
    await page.goto(`${pageUrl}#password=${VNC_PASSWORD}`);
    await says(page, 'The files of this page could not be loaded.');
    expect(failures()).toBe(6);
    await page.click('#again');
    await reaches(page, 'connected');
    await page.close();
  });

  test('asks for a missing password, and again after a wrong one', async () => {
    const page = await visit(pageUrl);
    await reaches(page, 'password');
    await page.type('#password', 'wrong123');
    await page.keyboard.press('Enter');
    await says(page, 'That was not the password of this session.');
    await page.type('#password', VNC_PASSWORD);
    await page.keyboard.press('Enter');
    await reaches(page, 'connected');
    await page.close();
  });

  test('sends the person’s keystrokes to the session’s page', async () => {
    const driver = await connect({ browserWSEndpoint: site.cdpUrl('s1'), defaultViewport: null });
    const [typedInto] = await driver.pages();
    if (typedInto === undefined) throw new Error('the session has no page');
    await typedInto.setContent('<textarea autofocus></textarea>');
    await typedInto.bringToFront();
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    const keyboard = await page.createCDPSession();
    const letters = 'aàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿß';
    const text = `${letters}ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞŁжЖΩ€b`;
    for (const [at, key] of Array.from(text, (typed, n) => [n, typed] as const)) {
      // With a position, as a keyboard has one, noVNC sends that, too; the character counts.
      const code = POSITIONS[at % POSITIONS.length] ?? '';
      await keyboard.send('Input.dispatchKeyEvent', { type: 'keyDown', key, code });
      await keyboard.send('Input.dispatchKeyEvent', { type: 'keyUp', key, code });
    }
    const typed = () => typedInto.evaluate(`document.querySelector('textarea').value`);
    await expect.poll(typed, SOON).toBe(text);
    await page.close();
    await driver.disconnect();
  });

  test('writes the session’s clipboard into the person’s own only when asked to', async () => {
    const everything = ['clipboard-read', 'clipboard-sanitized-write'] as const;
    await person.defaultBrowserContext().overridePermissions(site.http, [...everything]);
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    await page.bringToFront();
    const own = () => page.evaluate('navigator.clipboard.readText()');
    const isOffered = () => page.evaluate(`!document.getElementById('copy').hidden`);
    await page.evaluate(`navigator.clipboard.writeText('the person’s own')`);
    expect(await isOffered()).toBe(false);

    await copyInSession('first');
    await expect.poll(isOffered, SOON).toBe(true);
    expect(await own()).toBe('the person’s own');
    await page.click('#copy');
    await expect.poll(own, SOON).toBe('first');
    expect(await isOffered()).toBe(false);

    // In view only nothing is offered.
    await copyInSession('second');
    await expect.poll(isOffered, SOON).toBe(true);
    await page.click('#view-only');
    expect(await isOffered()).toBe(false);
    await page.evaluate(`document.getElementById('copy').click()`);
    await page.click('#view-only');
    expect([await own(), await isOffered()]).toEqual(['first', true]);
    await page.click('#copy');
    await expect.poll(own, SOON).toBe('second');
    await page.close();
  });

  test('hands over texts of up to 1 MB, and says of longer ones that they are too long', async () => {
    const everything = ['clipboard-read', 'clipboard-sanitized-write'] as const;
    await person.defaultBrowserContext().overridePermissions(site.http, [...everything]);
    const driver = await connect({ browserWSEndpoint: site.cdpUrl('s1'), defaultViewport: null });
    const [pastedInto] = await driver.pages();
    if (pastedInto === undefined) throw new Error('the session has no page');
    await pastedInto.setContent('<textarea></textarea>');
    const keyboard = await pastedInto.createCDPSession();
    const pasted = async () => {
      await pastedInto.bringToFront();
      await pastedInto.evaluate(`document.querySelector('textarea').value = ''`);
      await pastedInto.evaluate(`document.querySelector('textarea').focus()`);
      const key = { key: 'v', code: 'KeyV', windowsVirtualKeyCode: 86, modifiers: 2 };
      const down = { type: 'rawKeyDown' as const, ...key, commands: ['paste'] };
      await keyboard.send('Input.dispatchKeyEvent', down);
      await keyboard.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key });
      return pastedInto.evaluate(`document.querySelector('textarea').value.length`);
    };
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    const send = async (length: number) => {
      await page.bringToFront();
      await page.evaluate(`navigator.clipboard.writeText('x'.repeat(${length}))`);
      await page.click('#paste');
    };
    const status = () => page.evaluate(`document.getElementById('status').textContent`);

    await send(1_000_000);
    await expect.poll(pasted, SOON).toBe(1_000_000);
    await send(2_000_000);
    const tooLong = 'Your clipboard’s text is too long to send: it has 2 MB, and 1 MB is the most';
    await expect.poll(status, SOON).toBe(tooLong);
    expect(await pasted()).toBe(1_000_000);

    // In view only the viewer answers no request of the browser.
    await page.click('#view-only');
    await expect.poll(pasted, SOON).toBe(0);
    await page.click('#view-only');
    await copyInSession('x'.repeat(2_000_000));
    const missing = 'What was copied in the browser does not come; 1 MB is the most';
    await expect.poll(status, SOON).toBe(missing);
    await copyInSession('short');
    await expect.poll(status, SOON).toBe('Connected');
    await page.close();
    await driver.disconnect();
  });

  test('shows why the session ended', async () => {
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    site.directory.set('s1', { status: 'ended', reason: 'expired' });
    site.gateway.closeSession('org', 's1', 'expired');
    await reaches(page, 'ended');
    await says(page, 'The session reached the end of its time.');
    await page.reload();
    await reaches(page, 'ended');
    await says(page, 'The session reached the end of its time.');
    await page.close();
  });

  test('shows that its address was taken back', async () => {
    site.directory.set('s2', active);
    const taken = `${site.http}/vnc/${site.tickets.issue('vnc', 'org', 's2')}/`;
    const page = await visit(`${taken}#password=${VNC_PASSWORD}`);
    await reaches(page, 'connected');
    site.directory.set('s2', { ...active, accessEpoch: 1 });
    site.gateway.closeRotated('org', 's2', 1);
    await reaches(page, 'ended');
    await says(page, 'This link was replaced by another.');
    const title = await page.evaluate(`document.getElementById('title').textContent`);
    expect(title).toBe('This link is no longer valid');
    expect((await fetch(taken)).status).toBe(404);
    await page.close();
  });

  test('waits for a session that has no browser yet', async () => {
    site.directory.set('s1', { status: 'queued' });
    const page = await visit(`${pageUrl}#password=${VNC_PASSWORD}`);
    await says(page, 'The session has no browser yet.');
    site.directory.set('s1', active);
    await reaches(page, 'connected');
    await page.close();
  });

  test('has a strict content security policy and sends no referrer', async () => {
    const answer = await fetch(pageUrl);
    const policy = answer.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    // Its one inline script, by its hash.
    expect(policy).toMatch(/script-src 'self' 'sha256-[A-Za-z0-9+/]{43}=';/);
    expect(policy).not.toContain('unsafe');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect((await fetch(pageUrl.slice(0, -1))).url).toBe(pageUrl);
    expect((await fetch(pageUrl.replace(/.\/$/, '~/'))).status).toBe(404);
  });

  test('serves noVNC’s files and no others', async () => {
    const library = await file('novnc/core/rfb.js');
    expect(library.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    for (const name of [
      'novnc/package.json',
      'novnc/core/',
      'novnc/core/../package.json',
      'novnc/core/%2e%2e/package.json',
      '../../package.json',
      'index.html',
      '__proto__',
    ])
      expect((await file(name)).status, name).toBe(404);
  });
});

/** RFB 3.8 with VncAuth up to the size of the screen; `result` 0 is a password taken, 1 is not. */
async function greet(password: string) {
  const viewer = await openSocket(site.vncUrl('s1'), { protocols: ['binary'] });
  let at = 0;
  const read = async (length: number): Promise<Buffer> => {
    await until(() => Buffer.concat(viewer.messages).length >= at + length, `${length} bytes`);
    at += length;
    return Buffer.concat(viewer.messages).subarray(at - length, at);
  };
  viewer.socket.send(await read(12)); // the version
  await read(1 + 1); // one kind of security: VncAuth
  viewer.socket.send(Buffer.from([2]));
  viewer.socket.send(vncAuthResponse(password, await read(16)));
  const result = (await read(4)).readUInt32BE();
  viewer.socket.send(Buffer.from([1])); // shared
  const size = result === 0 ? await read(4) : Buffer.alloc(4);
  if (result === 0) viewer.socket.close();
  const closed = await viewer.closed;
  return { result, width: size.readUInt16BE(0), height: size.readUInt16BE(2), closed };
}

/** Copies a text in the session's page, as its user does. */
async function copyInSession(text: string): Promise<void> {
  const driver = await connect({ browserWSEndpoint: site.cdpUrl('s1'), defaultViewport: null });
  const [page] = await driver.pages();
  if (page === undefined) throw new Error('the session has no page');
  await page.bringToFront();
  await page.setContent('<textarea></textarea>');
  const session = await page.createCDPSession();
  const copied = await session.send('Runtime.evaluate', {
    expression:
      `const area = document.querySelector('textarea'); area.focus();` +
      `area.value = ${JSON.stringify(text)}; area.select(); document.execCommand('copy')`,
    replMode: true,
    userGesture: true,
  });
  // Only a focused element's selection can be copied, and focus by an attribute comes later.
  expect(copied.result.value).toBe(true);
  await driver.disconnect();
}

function file(name: string): Promise<Response> {
  return fetch(`${site.http}/viewer/${name}`);
}

/** Lets the first `count` requests for that file fail as on a changed network. */
async function failRequests(page: Page, file: string, count: number): Promise<() => number> {
  let failed = 0;
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const isFailing = failed < count && request.url().endsWith(`/${file}`);
    if (isFailing) failed += 1;
    void (isFailing ? request.abort('failed') : request.continue());
  });
  return () => failed;
}

async function visit(url: string): Promise<Page> {
  const page = await person.newPage();
  page.on('pageerror', (error) => expect.fail(`the page failed: ${String(error)}`));
  await page.goto(url);
  return page;
}

function reaches(page: Page, state: string): Promise<unknown> {
  return page.waitForSelector(`body[data-state=${state}]`, { timeout: 60_000 });
}

function says(page: Page, text: string): Promise<unknown> {
  return page.waitForFunction(
    `document.getElementById('text').textContent === ${JSON.stringify(text)}`,
    { timeout: 60_000 },
  );
}

/** Red, green, blue of a place in the page that the viewer has drawn; the mouse is elsewhere. */
async function colourOfScreen(page: Page): Promise<string> {
  return String(
    await page.evaluate(`(() => {
      const canvas = document.querySelector('#screen canvas');
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d').getImageData(width / 4, height * 0.75, 1, 1);
      return data.slice(0, 3).join(',');
    })()`),
  );
}
