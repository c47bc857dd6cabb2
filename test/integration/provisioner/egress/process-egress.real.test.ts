import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { createOpenEgress } from '#src/provisioner/egress/open-egress.ts';
import { openProcessBrowsers } from '#test/support/browsers/browsers.fixture.ts';
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
