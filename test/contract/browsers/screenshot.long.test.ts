import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import type { BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { openCdp as openClient } from '#src/browsers/chromium/cdp.ts';
import { takePicture } from '#src/browsers/chromium/screenshot.ts';
import { readTargets } from '#src/browsers/chromium/version.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  openProcessBrowsers,
  type Cdp,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';
import { decodeJpeg, isNear, type Decoded } from '#test/support/clients/jpeg.ts';
import { eventually } from '#test/support/service/service.ts';

/** Pictures of running browsers, as the provisioner makes them. */

const RED = '#c81e28';
const GREEN = '#1ec828';
const BLUE = '#1e28c8';
const pageOf = (colour: string) =>
  `data:text/html,<title>${colour.slice(1)}</title><body style="background:%23${colour.slice(1)}">`;

let decoders: OpenedBrowsers;
let decoder: { cdp: Cdp; page: string };
beforeAll(async () => {
  decoders = await openProcessBrowsers();
  const cdp = await openCdp((await decoders.browsers.launch(aSpec({ headless: true }))).cdp);
  decoder = { cdp, page: await attachPage(cdp) };
});
afterAll(async () => {
  decoder?.cdp[Symbol.dispose]();
  await decoders?.[Symbol.asyncDispose]();
});

async function pictureOf(browser: RunningBrowser, width = 320): Promise<Decoded> {
  const options = { width, quality: 70 };
  const bytes = await takePicture(browser.cdp, options, AbortSignal.timeout(10_000));
  return decodeJpeg(decoder.cdp, decoder.page, bytes);
}

/** Resolves once the browser's picture shows the colour. */
async function shows(browser: RunningBrowser, colour: string): Promise<void> {
  const isShown = async () => isNear((await pictureOf(browser)).middle, colour);
  await eventually(isShown, `the picture shows ${colour}`);
}

describe.each(adapters)('a picture of a browser ($adapter)', ({ adapter, open }) => {
  let opened: OpenedBrowsers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  async function launch(changes: Partial<BrowserSpec> = {}): Promise<RunningBrowser> {
    const spec = aSpec({ screen: { width: 800, height: 600 }, ...changes });
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return opened.browsers.launch(spec);
  }

  test.each([false, true])(
    'is a JPEG, no wider than asked for and than the page (headless: %s)',
    async (headless) => {
      const browser = await launch({ headless });
      expect((await pictureOf(browser, 64)).width).toBe(64);
      const small = await pictureOf(browser, 320);
      expect(small.width).toBe(320);
      const { width, height } = await pictureOf(browser, 1_920);
      expect(width).toBeGreaterThan(780);
      expect(width).toBeLessThanOrEqual(800);
      expect(Math.abs(small.height / small.width - height / width)).toBeLessThan(0.01);
    },
  );

  test('is refused by a browser that has gone, and ends with its signal', async () => {
    const browser = await launch();
    const options = { width: 320, quality: 70 };
    const aborted = AbortSignal.abort(new Error('enough'));
    await expect(takePicture(browser.cdp, options, aborted)).rejects.toThrow('enough');
    await opened.browsers.stop(browser.workloadId);
    const late = AbortSignal.timeout(10_000);
    await expect(takePicture(browser.cdp, options, late)).rejects.toThrow();
  });

  if (adapter === 'simulated') {
    test('shows which browser it is', async () => {
      const take = async ({ cdp }: RunningBrowser) =>
        takePicture(cdp, { width: 320, quality: 70 }, AbortSignal.timeout(10_000));
      const [one, other] = [await launch(), await launch()];
      expect((await take(one)).equals(await take(one))).toBe(true);
      expect((await take(one)).equals(await take(other))).toBe(false);
    });
    test('is what a client gets by Page.captureScreenshot', async () => {
      const { cdp: address } = await launch();
      using cdp = await openCdp(address);
      const { data } = await cdp.send('Page.captureScreenshot', {}, await attachPage(cdp));
      const decoded = await decodeJpeg(
        decoder.cdp,
        decoder.page,
        Buffer.from(String(data), 'base64'),
      );
      expect([decoded.width, decoded.height]).toEqual([800, 600]);
    });
    return;
  }

  test.each([false, true])(
    'shows the tab in front, of the newest window (headless: %s)',
    async (headless) => {
      const browser = await launch({ headless });
      using cdp = await openCdp(browser.cdp);
      const open = async (colour: string, how = {}) =>
        cdp.send('Target.createTarget', { url: pageOf(colour), ...how });
      await cdp.send('Page.navigate', { url: pageOf(RED) }, await attachPage(cdp));
      await shows(browser, RED);
      const { targetId } = await open(GREEN);
      await shows(browser, GREEN);
      await open(BLUE, { background: true });
      await shows(browser, GREEN);
      await open(RED);
      await shows(browser, RED);
      await cdp.send('Target.activateTarget', { targetId });
      await shows(browser, GREEN);
      await open(BLUE, { newWindow: true });
      await shows(browser, BLUE);
    },
  );

  test('shows the window in front', async () => {
    const browser = await launch();
    using cdp = await openCdp(browser.cdp);
    const { targetId } = await cdp.send('Target.createTarget', { url: pageOf(GREEN) });
    await cdp.send('Target.createTarget', { url: pageOf(BLUE), newWindow: true });
    await shows(browser, BLUE);
    await cdp.send('Target.activateTarget', { targetId });
    await shows(browser, GREEN);
  });

  test('is there at each moment of a navigation, and again after a crash', async () => {
    const browser = await launch();
    using cdp = await openCdp(browser.cdp);
    const page = await attachPage(cdp);
    // The answer comes only once the new page is there; no picture waits for it.
    const go = (url: string) => cdp.send('Page.navigate', { url }, page).catch(() => undefined);
    for (const colour of [RED, GREEN, BLUE, RED]) {
      const gone = go(pageOf(colour));
      expect((await pictureOf(browser, 64)).width).toBe(64);
      await gone;
      await shows(browser, colour);
    }
    void go('chrome://crash');
    const late = () => AbortSignal.timeout(1_000);
    const isRefused = async () =>
      takePicture(browser.cdp, { width: 64, quality: 70 }, late()).then(
        () => false,
        () => true,
      );
    await eventually(isRefused, 'a crashed page has no picture');
    await go(pageOf(GREEN));
    await shows(browser, GREEN);
  });

  test('leaves the screencast of another client as it is', async () => {
    const browser = await launch();
    using client = await openClient(browser.cdp, AbortSignal.timeout(30_000));
    const [target] = await readTargets(browser.cdp, AbortSignal.timeout(10_000));
    const attach = { targetId: target?.id, flatten: true };
    const { sessionId } = await client.send<{ sessionId: string }>('Target.attachToTarget', attach);
    const frames: Buffer[] = [];
    client.onEvent(({ method, params }) => {
      if (method !== 'Page.screencastFrame') return;
      frames.push(Buffer.from(String(params['data']), 'base64'));
      const ack = { sessionId: params['sessionId'] };
      // The browser may end before it answers.
      client.send('Page.screencastFrameAck', ack, sessionId).catch(() => undefined);
    });
    const cast = { format: 'jpeg', maxWidth: 200, maxHeight: 200 };
    await client.send('Page.startScreencast', cast, sessionId);
    for (const colour of [RED, GREEN, BLUE]) {
      const before = frames.length;
      await client.send('Page.navigate', { url: pageOf(colour) }, sessionId);
      await shows(browser, colour);
      await eventually(() => frames.length > before, 'the client has another frame');
    }
    for (const frame of frames)
      expect((await decodeJpeg(decoder.cdp, decoder.page, frame)).width).toBe(200);
  });

  test('changes nothing for the page and for the client that drives it', async () => {
    const browser = await launch();
    using cdp = await openCdp(browser.cdp);
    const page = await attachPage(cdp);
    await cdp.send('Page.navigate', { url: pageOf(RED) }, page);
    await shows(browser, RED);
    const metrics = { width: 500, height: 300, deviceScaleFactor: 2, mobile: false };
    await cdp.send('Emulation.setDeviceMetricsOverride', metrics, page);
    const listen = `
      window.seen = [];
      for (const name of ['resize', 'blur', 'focus', 'scroll'])
        addEventListener(name, () => seen.push(name));
      document.addEventListener('visibilitychange', () => seen.push('visibilitychange'));
      visualViewport.addEventListener('resize', () => seen.push('viewport'));`;
    const state = () =>
      evaluate(
        ...[cdp, page],
        `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(
          JSON.stringify([innerWidth, innerHeight, devicePixelRatio, document.hasFocus(),
            document.visibilityState, window.seen])))))`,
      );
    const isEmulated = async () => String(await state()).startsWith('[500,300,2');
    await eventually(isEmulated, 'the page has the emulated size');
    await evaluate(cdp, page, listen);
    const before = await state();
    for (const width of [64, 320, 1_280]) await pictureOf(browser, width);
    expect(await state()).toBe(before);
    expect(before).toMatch(/"visible",\[\]\]$/);
  });

  test('is there while the page computes, and while a dialog waits, which it leaves open', async () => {
    const browser = await launch();
    using cdp = await openCdp(browser.cdp);
    const page = await attachPage(cdp);
    await cdp.send('Page.navigate', { url: pageOf(GREEN) }, page);
    await shows(browser, GREEN);
    // As automation does: dialogs are its own to close.
    await cdp.send('Page.enable', {}, page);
    const start = (script: string) => evaluate(cdp, page, `setTimeout(() => { ${script} }, 0), 0`);
    const isStuck = async () =>
      Promise.race([
        evaluate(cdp, page, '1').then(() => false),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 300)),
      ]);
    await start('window.answer = confirm("Really?")');
    await eventually(isStuck, 'the dialog is open');
    expect(isNear((await pictureOf(browser)).middle, GREEN)).toBe(true);
    expect(await isStuck()).toBe(true);
    await cdp.send('Page.handleJavaScriptDialog', { accept: true }, page);
    expect(await evaluate(cdp, page, 'window.answer')).toBe(true);
    await start('for (;;);');
    await eventually(isStuck, 'the page computes');
    expect(isNear((await pictureOf(browser)).middle, GREEN)).toBe(true);
  });
});

describe('a browser that a page has taken over', () => {
  // An error in a listener of the socket would end the process, and so this test.
  test.each([
    'no JSON',
    'null',
    '[]',
    '{"method":"Page.screencastVisibilityChanged"}',
    '{"method":"Page.screencastFrame","params":null}',
    '{"id":1,"error":null}',
  ])('gets no picture and does no harm by sending %s', async (message) => {
    const server = createServer((_, response) => response.end('[{"id":"1","type":"page"}]'));
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.on('message', () => socket.send(message)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const address = { host: '127.0.0.1', port, path: '/devtools/browser/1' };
    const options = { width: 320, quality: 70 };
    await expect(takePicture(address, options, AbortSignal.timeout(500))).rejects.toThrow();
  });
});
