import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { pack } from 'tar-stream';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';

/** A page that prints itself, or a person with Ctrl+P: the dialog would hold up the client. */

const real = adapters.filter(({ adapter }) => adapter !== 'simulated');

/** A profile that was kept by a browser that could print. */
async function* keptProfile(): AsyncGenerator<Uint8Array> {
  const tar = pack();
  const owner = { uid: 1000, gid: 1000 };
  tar.entry({ name: './Default', type: 'directory', mode: 0o700, ...owner });
  const preferences = '{"intl":{"x":1},"printing":{"enabled":true},"zz":{"x":1}}';
  tar.entry({ name: './Default/Preferences', mode: 0o600, ...owner }, preferences);
  tar.finalize();
  yield* tar as AsyncIterable<Uint8Array>;
}

describe.each(real)('a page that prints ($adapter)', ({ open }) => {
  let opened: OpenedBrowsers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test.each<[string, () => Partial<BrowserSpec>]>([
    ['with a screen', () => ({})],
    ['that is headless', () => ({ headless: true })],
    ['with a profile that was kept', () => ({ profile: { tar: keptProfile() } })],
  ])('shows no dialog in a browser %s, goes on, and can be made a PDF', async (_, changes) => {
    const spec = aSpec(changes());
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    const browser = await opened.browsers.launch(spec);
    using cdp = await openCdp(browser.cdp);
    const session = await attachPage(cdp);
    const prints = ['print()', 'document.execCommand("print")', 'frames[0].print()'];
    const page = 'data:text/html,<h1>Invoice</h1><iframe></iframe>';
    await cdp.send('Page.navigate', { url: page }, session);
    await expect.poll(() => evaluate(cdp, session, 'frames.length')).toBe(1);
    for (const script of prints)
      expect(await evaluate(cdp, session, `${script}; '${script.length}'`)).toBe(
        `${script.length}`,
      );
    const { data } = await cdp.send('Page.printToPDF', {}, session);
    expect(Buffer.from(String(data), 'base64').toString('latin1', 0, 5)).toBe('%PDF-');
    const { targetInfos } = await cdp.send('Target.getTargets');
    expect(targetInfos).toHaveLength(1);
  });
});
