import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { BrowserExit, BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import type { ObservedTarget } from '#src/browsers/observer/part.ts';
import { createObserver } from '#src/browsers/observer/observer.ts';
import { dialRfb } from '#test/support/clients/rfb-client.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { getFrom, openCdp, sizesOf } from '#test/support/browsers/browsers.fixture.ts';
import type { OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';

const log = pino({ level: 'silent' });
const POLL = { timeout: 60_000 };

describe.each(adapters)('browsers ($adapter)', ({ adapter, open, openFailing }) => {
  let opened: OpenedBrowsers;
  const exits: BrowserExit[] = [];
  beforeAll(async () => {
    opened = await open();
    opened.browsers.onExit((exit) => exits.push(exit));
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Launches a browser that is stopped at the end of the test. */
  async function launch(changes: Partial<BrowserSpec> = {}): Promise<RunningBrowser> {
    const spec = aSpec(changes);
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return opened.browsers.launch(spec);
  }

  test('have the kind of their adapter', () => {
    expect(opened.browsers.kind).toBe(adapter);
  });

  test('answer the first CDP command and have one page open', async () => {
    const browser = await launch();
    expect(browser.cdp.path).toMatch(/^\/devtools\/browser\/[\da-f-]{36}$/);
    using cdp = await openCdp(browser.cdp);
    expect(await cdp.send('Browser.getVersion')).toMatchObject({ protocolVersion: '1.3' });
    expect(await cdp.send('Target.getTargets')).toMatchObject({
      targetInfos: [{ type: 'page', url: 'about:blank' }],
    });
    await expect(cdp.send('No.such')).rejects.toThrow('-32601');
    const used = await opened.browsers.memoryUsed?.(browser.workloadId);
    if (adapter === 'simulated') expect(used).toBeUndefined();
    else expect(used).toBeGreaterThan(10_000_000);
    // The provisioner's own connection, beside that of a client, follows each page.
    const urls: string[] = [];
    const attached = async (page: ObservedTarget) => {
      await Promise.all(['Log.enable', 'Page.enable'].map((method) => page.send(method)));
      urls.push(page.url);
    };
    const parts = [{ name: 'test', pages: { attached } }];
    using observer = createObserver({ parts, log, attachWithinMs: POLL.timeout });
    await observer.attach(browser);
    expect(urls).toEqual(['about:blank']);
    await cdp.send('Target.createTarget', { url: 'about:blank' });
    await expect.poll(() => urls.length, POLL).toBe(2);
  });

  test('serve the addresses of their sockets over HTTP, and nothing else', async () => {
    const { cdp } = await launch();
    const get = (path: string) => getFrom(cdp, path);
    expect(JSON.parse((await get('/json/version')).text)).toMatchObject({
      'Protocol-Version': '1.3',
      webSocketDebuggerUrl: `ws://${cdp.host}:${cdp.port}${cdp.path}`,
    });
    expect(JSON.parse((await get('/json/list')).text)).toMatchObject([
      { type: 'page', url: 'about:blank' },
    ]);
    expect((await get('/no/such')).status).toBe(404);
  });

  test('show a screen of the requested size to a viewer with the password', async () => {
    const browser = await launch({ screen: { width: 640, height: 400 }, vncPassword: 'aB3dE6gH' });
    using viewer = await dialRfb(browser.vnc, 'aB3dE6gH');
    expect([viewer.width, viewer.height]).toEqual([640, 400]);
    expect((await viewer.framebuffer()).length).toBe(640 * 400 * 4);
  });

  test('have no VNC screen if they are headless, and a window of the requested size', async () => {
    const screen = { width: 900, height: 700 };
    const { cdp, vnc, workloadId } = await launch({ headless: true, screen });
    await expect(dialRfb(vnc, 'pass0rd1')).rejects.toThrow();
    // A page may get its sizes after the browser is ready.
    await expect
      .poll(() => sizesOf({ cdp }), POLL)
      .toMatchObject({ screen: [900, 700], outer: [900, 700] });
    await opened.browsers.stop(workloadId);
    expect(opened.traces()).toEqual([]);
  });

  test('leave nothing after a stop', async () => {
    const { workloadId, cdp, vnc } = await launch({ vncPassword: 'aB3dE6gH' });
    using client = await openCdp(cdp);
    using viewer = await dialRfb(vnc, 'aB3dE6gH');
    if (adapter !== 'simulated') expect(opened.traces().length).toBeGreaterThan(0);

    await opened.browsers.stop(workloadId);

    expect(opened.traces()).toEqual([]);
    expect(await opened.browsers.list()).toEqual([]);
    await expect(client.send('Browser.getVersion')).rejects.toThrow();
    await expect(viewer.framebuffer()).rejects.toThrow();
    await Promise.all([
      expect(openCdp(cdp)).rejects.toThrow(),
      expect(dialRfb(vnc, 'aB3dE6gH')).rejects.toThrow(),
    ]);
    expect(exits).toEqual([]);
  });

  test('can be stopped twice, concurrently or later, and if they never existed', async () => {
    const { workloadId } = await launch();
    await Promise.all([opened.browsers.stop(workloadId), opened.browsers.stop(workloadId)]);
    await opened.browsers.stop(workloadId);
    await opened.browsers.stop('wl_never');
    expect(opened.traces()).toEqual([]);
  });

  test('are listed while they run', async () => {
    const browser = await launch();
    expect(await opened.browsers.list()).toEqual([
      { workloadId: browser.workloadId, sessionId: null, adoptable: browser },
    ]);
  });

  test('are listed with their session once it is assigned, and can be adopted', async () => {
    const browser = await launch();
    const { workloadId } = browser;
    await opened.browsers.assign(workloadId, 'ses_one');
    await opened.browsers.assign('wl_never', 'ses_two');
    expect(await opened.browsers.list()).toEqual([
      { workloadId, sessionId: 'ses_one', adoptable: browser },
    ]);
    expect(await opened.browsers.adopt(workloadId)).toEqual(browser);
    expect(await opened.browsers.adopt('wl_never')).toBeNull();
    await opened.browsers.stop(workloadId);
    expect(await opened.browsers.adopt(workloadId)).toBeNull();
  });

  test('end when they are stopped during their launch', async () => {
    const spec = aSpec();
    const launching = opened.browsers.launch(spec);
    const outcome = expect(launching).rejects.toThrow(LaunchFailed);
    expect(await opened.browsers.list()).toEqual([
      { workloadId: spec.workloadId, sessionId: null, adoptable: null },
    ]);
    await opened.browsers.stop(spec.workloadId);
    await outcome;
    expect(opened.traces()).toEqual([]);
    expect(await opened.browsers.list()).toEqual([]);
  });

  test('report a crash once, after everything of the browser is removed', async () => {
    const { workloadId, cdp } = await launch();
    const tracesAtExit: string[] = [];
    opened.browsers.onExit((exit) => {
      if (exit.workloadId === workloadId) tracesAtExit.push(...opened.traces());
    });
    opened.crash(workloadId);
    await expect.poll(() => exits.length).toBe(1);
    // A container's exit code for a signal is 128 + its number.
    const exitCode = adapter === 'docker' || adapter === 'kubernetes' ? 137 : null;
    const rest = {
      ...(adapter === 'process' ? { signal: 'SIGKILL' } : {}),
      ...{ endedAt: expect.any(Number), detail: expect.any(String) },
    };
    expect(exits.splice(0)).toEqual([{ workloadId, reason: 'browser_crashed', exitCode, ...rest }]);
    expect(tracesAtExit).toEqual([]);
    expect(await opened.browsers.list()).toEqual([]);
    await expect(openCdp(cdp)).rejects.toThrow();
    await opened.browsers.stop(workloadId);
    expect(exits).toEqual([]);
  });

  test('refuse a second browser for one workload', async () => {
    const { workloadId } = await launch();
    await expect(opened.browsers.launch(aSpec({ workloadId }))).rejects.toThrow(workloadId);
  });

  test('report why a launch failed, and leave nothing of it', async () => {
    await using failing = await openFailing();
    const failure = failing.browsers.launch(aSpec());
    await expect(failure).rejects.toThrow(LaunchFailed);
    expect(failing.traces()).toEqual([]);
    expect(await failing.browsers.list()).toEqual([]);
  });

  test('all end when the adapter is disposed of', async () => {
    await using other = await open();
    const [one, two] = await Promise.all([
      other.browsers.launch(aSpec({ vncPassword: 'one11111' })),
      other.browsers.launch(aSpec({ vncPassword: 'two22222' })),
    ]);
    await other.browsers[Symbol.asyncDispose]();
    expect(other.traces()).toEqual([]);
    await Promise.all([
      expect(openCdp(one.cdp)).rejects.toThrow(),
      expect(openCdp(two.cdp)).rejects.toThrow(),
      expect(dialRfb(two.vnc, 'two22222')).rejects.toThrow(),
    ]);
  });
});
