import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { BrowserExit, RunningBrowser } from '#src/provisioner/browsers/browsers.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp, OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';

/** How browsers end without a stop, by what their users do. */

const POLL = { timeout: 10_000 };

describe.each(adapters)('browsers ($adapter)', ({ adapter, open }) => {
  let opened: OpenedBrowsers;
  const exits: BrowserExit[] = [];
  beforeAll(async () => {
    opened = await open();
    opened.browsers.onExit((exit) => exits.push(exit));
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** A browser that is stopped when its test is over. */
  async function launch(wish: { headless: boolean }): Promise<RunningBrowser> {
    const spec = aSpec(wish);
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return opened.browsers.launch(spec);
  }

  describe.each([{ headless: false }, { headless: true }])('headless: $headless', (wish) => {
    test('report a close by CDP as one, once, when nothing of the browser is left', async () => {
      const { workloadId, cdp } = await launch(wish);
      const tracesAtExit: string[] = [];
      opened.browsers.onExit((exit) => {
        if (exit.workloadId === workloadId) tracesAtExit.push(...opened.traces());
      });
      const askedAt = Date.now();
      await endByCdp(cdp, 'Browser.close');
      await expect.poll(() => exits.length, POLL).toBe(1);
      const [exit] = exits.splice(0);
      expect(exit).toMatchObject({ workloadId, reason: 'browser_closed', exitCode: 0 });
      expect(exit?.endedAt).toBeGreaterThanOrEqual(askedAt);
      expect(exit?.endedAt).toBeLessThanOrEqual(Date.now());
      expect(tracesAtExit).toEqual([]);
      expect(await opened.browsers.list()).toEqual([]);
      await opened.browsers.stop(workloadId);
      expect(exits).toEqual([]);
    });

    test('go on when their last page is closed, and open the next', async () => {
      const { workloadId, cdp } = await launch(wish);
      using client = await openCdp(cdp);
      const [page] = await pagesOf(client);
      await client.send('Target.closeTarget', { targetId: page?.targetId });
      await expect.poll(() => pagesOf(client), POLL).toEqual([]);
      const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
      expect(await pagesOf(client)).toMatchObject([{ targetId, type: 'page' }]);
      // Without a page it is as well closed as with one.
      await client.send('Target.closeTarget', { targetId });
      await expect.poll(() => pagesOf(client), POLL).toEqual([]);
      expect(exits).toEqual([]);
      await endByCdp(cdp, 'Browser.close');
      await expect.poll(() => exits.length, POLL).toBe(1);
      expect(exits.splice(0)).toMatchObject([{ workloadId, reason: 'browser_closed' }]);
    });

    test('report a crash as one, with how it ended and the last words', async () => {
      const { workloadId, cdp } = await launch(wish);
      await endByCdp(cdp, 'Browser.crash');
      await expect.poll(() => exits.length, POLL).toBe(1);
      const [exit] = exits.splice(0);
      const end = CRASHES[adapter];
      expect(exit).toMatchObject({ workloadId, reason: 'browser_crashed', ...end?.exit });
      for (const word of end?.words ?? []) expect(exit?.detail).toContain(word);
    });
  });
});

/** How a crash of Chromium by SIGTRAP is told: the engine adds its number to 128. */
const CRASHES: Record<string, { exit: Partial<BrowserExit>; words: string[] }> = {
  docker: { exit: { exitCode: 133 }, words: ['Trace/breakpoint trap', 'Chromium ended with 133'] },
  process: { exit: { exitCode: null }, words: ['Chromium: killed by SIGTRAP', 'DevTools list'] },
  simulated: { exit: { exitCode: null }, words: ['a simulated crash'] },
};

/** Has a browser end itself; its socket may close before the answer is sent. */
async function endByCdp(cdp: RunningBrowser['cdp'], method: string): Promise<void> {
  using client = await openCdp(cdp);
  await client.send(method).catch(() => undefined);
}

async function pagesOf(client: Cdp): Promise<{ targetId: string; type: string }[]> {
  const { targetInfos } = await client.send('Target.getTargets');
  return (targetInfos as { targetId: string; type: string }[]).filter(
    ({ type }) => type === 'page',
  );
}
