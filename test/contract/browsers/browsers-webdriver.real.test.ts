import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { adapters, aSpec } from '#test/support/browsers/browsers-adapters.ts';
import { openCdp, type OpenedBrowsers } from '#test/support/browsers/browsers.fixture.ts';
import { attach, command, driverOf } from '#test/support/browsers/driver.ts';

const real = adapters.filter(({ adapter }) => adapter !== 'simulated');

describe.each(real)('WebDriver beside a browser ($adapter)', ({ open }) => {
  let opened: OpenedBrowsers;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  async function launch() {
    const spec = aSpec();
    onTestFinished(() => opened.browsers.stop(spec.workloadId));
    return await opened.browsers.launch(spec);
  }

  test('starts with its first connection and drives the page that CDP sees', async () => {
    const browser = await launch();
    const driver = driverOf(browser);
    const [one, other] = await Promise.all([attach(driver), command(driver, 'GET', '/status')]);
    expect(other).toMatchObject({ status: 200, value: { ready: true } });
    const url = 'data:text/html,<title>driven</title>';
    const went = await command(driver, 'POST', `/session/${one}/url`, { body: { url } });
    expect(went).toEqual({ status: 200, value: null });
    using cdp = await openCdp(browser.cdp);
    expect(await cdp.send('Target.getTargets')).toMatchObject({
      targetInfos: [{ type: 'page', title: 'driven' }],
    });
  });

  test('takes no command below another path, with an Origin, or for another host', async () => {
    const driver = driverOf(await launch());
    await command(driver, 'GET', '/status');
    const elsewhere = { ...driver, path: `/${'0'.repeat(32)}` };
    const shutdown = await command(elsewhere, 'GET', '/shutdown').catch(() => ({ status: 0 }));
    expect(shutdown.status).not.toBe(200);
    for (const headers of [{ origin: 'http://example.org' }, { host: 'example.org' }]) {
      const refused = await command(driver, 'GET', '/status', { headers });
      expect(refused.value).toMatch(/rejected by the server/);
    }
    expect(await command(driver, 'GET', '/status')).toMatchObject({ status: 200 });
  });

  test('ends with its browser and leaves nothing', async () => {
    const browser = await launch();
    const driver = driverOf(browser);
    await attach(driver);
    await opened.browsers.stop(browser.workloadId);
    await expect(command(driver, 'GET', '/status')).rejects.toThrow();
    expect(opened.traces()).toEqual([]);
  });
});
