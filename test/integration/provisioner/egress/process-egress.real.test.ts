import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { createOpenEgress } from '#src/features/egress/open-egress.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { evaluate, openCdp, openProcessBrowsers } from '#test/support/browsers/browsers.fixture.ts';
import { attemptAll, heldBack } from '#test/support/browsers/egress-attempts.ts';
import { siteProgram } from '#test/support/servers/outside-site.ts';
import { freePort } from '#test/support/servers/ports.ts';

const PRIVATE = '127.0.0.9';

it('a browser that is started with its proxy has no way past it', async () => {
  const port = await freePort();
  const said = await openSite(port);
  await using opened = await openProcessBrowsers();
  const openEgress = createOpenEgress({
    resolve: async (name) => [name === 'trick.localhost' ? PRIVATE : '127.0.0.1'],
    isClosed: (address) => address === PRIVATE,
  });
  const rules = { allow: ['allowed.localhost', 'trick.localhost'], deny: [] };
  await using egress = await openEgress(rules, 'ses_1');
  const browser = await opened.browsers.launch({
    workloadId: 'wl_egress',
    vncPassword: 'aB3dE6gH',
    screen: { width: 800, height: 600 },
    headless: true,
    egress,
  });
  const targets = { allowed: 'allowed.localhost', denied: 'denied.localhost' };
  const place = { trick: 'trick.localhost', address: '127.0.0.1', port };
  expect(await attemptAll(browser, { ...targets, ...place })).toEqual(heldBack);
  expect(said.filter((line) => line.startsWith('udp'))).toEqual([]);
  const refused = new Map(egress.takeTraffic()?.hosts.map((one) => [one.host, one.lastRefusal]));
  expect(refused.get('denied.localhost')).toBe('not_allowed');
  expect(refused.get('trick.localhost')).toBe('private_network');
  expect(refused.get('allowed.localhost')).toBeUndefined();
});

it('a browser’s proxy is no way out for another browser, nor for other programs', async () => {
  const port = await freePort();
  await openSite(port);
  await using opened = await openProcessBrowsers();
  const openEgress = createOpenEgress({
    resolve: async () => ['127.0.0.1'],
    isClosed: () => false,
  });
  await using egress = await openEgress({ allow: ['allowed.localhost'], deny: [] }, 'ses_1');
  const common = {
    vncPassword: 'aB3dE6gH',
    screen: { width: 800, height: 600 },
    headless: true,
  } as const;
  const own = await opened.browsers.launch({ ...common, workloadId: 'wl_own', egress });
  const other = await opened.browsers.launch({ ...common, workloadId: 'wl_other' });
  const proxyPort = await egress.listen(async () => false);
  const url = `http://allowed.localhost:${port}/`;

  /** What a page of a browser context with this proxy finds at the URL. */
  async function found({ cdp: address }: RunningBrowser, context: object): Promise<unknown> {
    using cdp = await openCdp(address);
    const { browserContextId } = await cdp.send('Target.createBrowserContext', context);
    const made = { url: 'about:blank', browserContextId };
    const { targetId } = await cdp.send('Target.createTarget', made);
    const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
    await cdp.send('Page.navigate', { url }, String(sessionId));
    const text = `new Promise((done) => document.readyState === 'complete'
      ? done(document.body.innerText) : onload = () => done(document.body.innerText))`;
    return await evaluate(cdp, String(sessionId), text);
  }
  const stolen = {
    proxyServer: `http://127.0.0.1:${proxyPort}`,
    proxyBypassList: '<-loopback>',
  };
  expect(await found(other, stolen)).toContain('This proxy is of another browser.');
  const asked = request({ port: proxyPort, path: url, headers: { host: 'allowed.localhost' } });
  const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(403);
  answer.resume();
  expect(await found(own, {})).not.toContain('This proxy is of another browser.');
});

/** Starts the site. @returns the lines in which it says what arrived */
async function openSite(port: number): Promise<string[]> {
  const args = ['-e', siteProgram(port)];
  const site = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void site.kill('SIGKILL'));
  const lines: string[] = [];
  const reader = createInterface({ input: site.stdout });
  reader.on('line', (line) => lines.push(line));
  await once(reader, 'line');
  return lines;
}
