import { describe, expect, test } from 'vitest';
import { readExtension } from '#src/browsers/extensions/read-extension.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { attachPage, evaluate, openCdp } from '#test/support/browsers/browsers.fixture.ts';
import { extensionZip, MANIFEST } from '#test/support/extensions/extension-zip.ts';

/** Real browsers with extensions; a simulated one ignores them. */

async function sources() {
  const second = { 'code/mark.js': "document.documentElement.dataset.second = 'yes';" };
  const zips = [await extensionZip(), await extensionZip({ ...MANIFEST, name: 'Other' }, second)];
  return Promise.all(
    zips.map(async (zip) => ({ id: (await readExtension(zip)).extensionId, zip: async () => zip })),
  );
}

describe.each(adapters)('a browser with extensions ($adapter)', ({ adapter, open }) => {
  test('lets them change its pages, and leaves nothing of them', async () => {
    await using opened = await open();
    const { browsers, traces } = opened;
    const spec = aSpec({ extensions: await sources() });
    const browser = await browsers.launch(spec);
    // In a container Chromium has this port, and what answers outside is the link's.
    const port = adapter === 'process' ? browser.cdp.port : 9222;
    if (adapter !== 'simulated') await expectMarks(browser, port);
    await browsers.stop(spec.workloadId);
    expect(traces()).toEqual([]);
  });

  test('is not launched without one of them', async () => {
    if (adapter === 'simulated') return;
    await using opened = await open();
    const gone = { id: 'ext_gone', zip: () => Promise.reject(new Error('it has been removed')) };
    const spec = aSpec({ extensions: [gone] });
    await expect(opened.browsers.launch(spec)).rejects.toThrow('it has been removed');
    expect(opened.traces()).toEqual([]);
  });
});

/** Both extensions have written into a page: one that the browser serves itself. */
async function expectMarks({ cdp: address }: RunningBrowser, port: number): Promise<void> {
  using cdp = await openCdp(address);
  const page = await attachPage(cdp);
  await cdp.send('Page.enable', {}, page);
  await cdp.send('Page.navigate', { url: `http://127.0.0.1:${port}/json/version` }, page);
  const marks = 'JSON.stringify({ ...document.documentElement.dataset })';
  const found = async () => JSON.parse(String(await evaluate(cdp, page, marks))) as object;
  await expect.poll(found).toMatchObject({ marked: 'yes', second: 'yes' });
}
