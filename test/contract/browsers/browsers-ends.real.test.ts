import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { BrowserExit, RunningBrowser } from '#src/browsers/browsers.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { openCdp } from '#test/support/browsers/browsers.fixture.ts';
import type { Cdp, OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';

/** Browsers that end without a stop, by actions of their users. */

const POLL = { timeout: 60_000 };

describe.each(adapters)('browsers ($adapter)', ({ adapter, open }) => {
  let opened: OpenedBrowsers;
  const exits: BrowserExit[] = [];
  beforeAll(async () => {
    opened = await open();
    opened.browsers.onExit((exit) => exits.push(exit));
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  /** Launches a browser that is stopped at the end of the test. */
  async function launch(options: { headless: boolean }): Promise<RunningBrowser> {
    const spec = aSpec(options);
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return opened.browsers.launch(spec);
  }

  describe.each([{ headless: false }, { headless: true }])('headless: $headless', (options) => {
    test('report a close by CDP once, after everything of the browser is removed', async () => {
      const { workloadId, cdp } = await launch(options);
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

    test('keep running when their last page is closed, and can open another', async () => {
      const { workloadId, cdp } = await launch(options);
      using client = await openCdp(cdp);
      const [page] = await pagesOf(client);
      await client.send('Target.closeTarget', { targetId: page?.targetId });
      await expect.poll(() => pagesOf(client), POLL).toEqual([]);
      const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
      expect(await pagesOf(client)).toMatchObject([{ targetId, type: 'page' }]);
      // A browser without a page can be closed too.
      await client.send('Target.closeTarget', { targetId });
      await expect.poll(() => pagesOf(client), POLL).toEqual([]);
      expect(exits).toEqual([]);
      await endByCdp(cdp, 'Browser.close');
      await expect.poll(() => exits.length, POLL).toBe(1);
      expect(exits.splice(0)).toMatchObject([{ workloadId, reason: 'browser_closed' }]);
    });

    test('report a crash with its exit code and the last output', async () => {
      const { workloadId, cdp } = await launch(options);
      await endByCdp(cdp, 'Browser.crash');
      await expect.poll(() => exits.length, POLL).toBe(1);
      const [exit] = exits.splice(0);
      const end = CRASHES[adapter];
      expect(exit).toMatchObject({ workloadId, reason: 'browser_crashed', ...end?.exit });
      for (const word of end?.words ?? []) expect(exit?.detail).toContain(word);
    });
  });
});

/** How a crash of Chromium by SIGTRAP is reported; a container's exit code is 128 + its number. */
const IN_CONTAINER = {
  exit: { exitCode: 133 },
  words: ['Trace/breakpoint trap', 'Chromium ended with 133'],
};
const CRASHES: Record<string, { exit: Partial<BrowserExit>; words: string[] }> = {
  docker: IN_CONTAINER,
  kubernetes: IN_CONTAINER,
  process: { exit: { exitCode: null }, words: ['Chromium: killed by SIGTRAP', 'DevTools list'] },
  simulated: { exit: { exitCode: null }, words: ['a simulated crash'] },
};

/** Makes a browser end itself; its socket may close before the reply. */
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
