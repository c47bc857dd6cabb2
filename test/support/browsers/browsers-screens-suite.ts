import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { resizeScreen } from '#src/browsers/chromium/resize-screen.ts';
import { dialRfb, RfbRefused } from '#test/support/clients/rfb-client.ts';
import { aSpec, type Adapter } from './browsers-adapters.ts';
import { sizesOf, type OpenedBrowsers } from './browsers.fixture.ts';

const POLL = { timeout: 60_000 };

/** What the X server and Chromium do alike wherever they run. */
export function browsersScreens({ open }: Adapter): void {
  let opened: OpenedBrowsers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Launches a browser that is stopped at the end of the test. */
  async function launch(changes: Partial<BrowserSpec> = {}): Promise<RunningBrowser> {
    const spec = aSpec(changes);
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return opened.browsers.launch(spec);
  }

  test('refuse wrong passwords repeatedly and still accept the right one', async () => {
    const { vnc } = await launch({ vncPassword: 'aB3dE6gH' });
    for (const wrong of ['aB3dE6gh', '', 'aB3dE6g', 'XXXXXXXX', '00000000', 'aB3dE6g_', 'ABCDEFGH'])
      await expect(dialRfb(vnc, wrong)).rejects.toThrow(RfbRefused);
    using viewer = await dialRfb(vnc, 'aB3dE6gH');
    expect(viewer.width).toBe(1024);
  });

  test('keep the screens of two browsers apart', async () => {
    const one = await launch({ vncPassword: 'one11111', screen: { width: 640, height: 400 } });
    const two = await launch({ vncPassword: 'two22222', screen: { width: 800, height: 600 } });
    expect(two.cdp.path).not.toBe(one.cdp.path);
    using viewer = await dialRfb(two.vnc, 'two22222');
    expect(viewer.width).toBe(800);
    // Where both have the same address, a password opens only its own browser's screen.
    const widthSeen = await dialRfb(two.vnc, 'one11111').then(
      (other) => other.width,
      () => 'refused',
    );
    expect([640, 'refused']).toContain(widthSeen);
  });

  test('can be resized while they run, as if they had been launched with that screen', async () => {
    const running = await launch({ vncPassword: 'aB3dE6gH' });
    const resize = (screen: BrowserSpec['screen'], vncPassword = 'aB3dE6gH') =>
      resizeScreen(running, { vncPassword, screen }, AbortSignal.timeout(20_000));
    await expect(resize({ width: 800, height: 600 }, 'wrongpwd')).rejects.toThrow('password');
    const launched = await launch({ screen: { width: 1400, height: 900 } });
    for (const screen of [
      { width: 640, height: 400 },
      { width: 1400, height: 900 },
    ]) {
      await resize(screen);
      using viewer = await dialRfb(running.vnc, 'aB3dE6gH');
      expect([viewer.width, viewer.height]).toEqual([screen.width, screen.height]);
    }
    const { screen, outer, inner } = await sizesOf(running);
    expect(screen).toEqual([1400, 900]);
    // A page may get its sizes after the browser is ready.
    await expect.poll(() => sizesOf(launched), POLL).toEqual({ screen, outer, inner });
    await opened.browsers.stop(running.workloadId);
    await expect(resize({ width: 800, height: 600 })).rejects.toThrow();
  });
}
