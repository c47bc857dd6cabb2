import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { installExample, packClient } from '#test/support/clients/example-project.ts';
import { installPython } from '#test/support/clients/python-packages.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { DEV_KEY } from '#test/support/service/service.ts';
import { startRealService, type RealService } from '#test/support/service/real-session.ts';

/**
 * The folders in test/examples: test runners, crawlers and agents of others, with the packages that
 * their users have, on sessions of a service with real browsers.
 */

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PAGES: Record<string, string> = {
  '/': '<title>start</title><a href="/a">a</a> <a href="/b">b</a>',
  '/a': '<title>page a</title><a href="/">start</a>',
  '/b': '<title>page b</title>',
  '/form': '<title>Form</title><button onclick="document.title=`Sent`">Send</button>',
};

let folder: Awaited<ReturnType<typeof scratchDir>>;
let service: RealService;
let client: Client;
let tarball: string;
let site: Server;
let address: string;
beforeAll(async () => {
  folder = await scratchDir();
  tarball = await packClient(folder.path);
  service = await startRealService();
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  site = createServer(({ url = '' }, response) => {
    response.setHeader('content-type', 'text/html');
    response.writeHead(url in PAGES ? 200 : 404).end(PAGES[url]);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  address = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});
afterAll(async () => {
  site?.close();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** The status of the sessions of that name, and that no other is open. */
async function statusesOf(name: RegExp): Promise<string[]> {
  const { sessions } = await client.sessions.list({ limit: 100 });
  const isOpen = ({ status }: { status: string }) => !status.startsWith('stopp');
  expect(sessions.filter(isOpen)).toEqual([]);
  return sessions.filter(({ session_name }) => name.test(session_name)).map(({ status }) => status);
}

describe('the example of', () => {
  it('Playwright Test runs each worker’s tests in a session of its own', async () => {
    const exec = await installExample('playwright-test', folder.path, tarball);
    const printed = await exec('playwright', ['test', '--reporter', 'json'], {
      BSS_URL: service.apiUrl,
      BSS_API_KEY: DEV_KEY,
    });
    const report = JSON.parse(printed) as {
      stats: { expected: number; unexpected: number };
      suites: { specs: { tests: { annotations: { description: string }[] }[] }[] }[];
    };
    expect(report.stats).toMatchObject({ expected: 4, unexpected: 0 });
    const specs = report.suites.flatMap((suite) => suite.specs);
    const used = specs.flatMap(({ tests }) => tests.flatMap((one) => one.annotations));
    expect(used.length).toBe(4);
    expect(new Set(used.map(({ description }) => description)).size).toBe(2);
    expect((await statusesOf(/^worker-/)).length).toBe(2);
  });

  it('Crawlee crawls a site with the browser of one session', async () => {
    const exec = await installExample('crawlee', folder.path, tarball);
    const args = ['crawl.mjs', service.apiUrl, DEV_KEY, `${address}/`];
    const printed = await exec(process.execPath, args);
    expect(printed.split('\n').at(-1)).toBe('page a, page b, start');
    expect((await statusesOf(/^crawl$/)).length).toBe(1);
  });

  it('Stagehand acts on the page by its extension in the session', async () => {
    const exec = await installExample('stagehand', folder.path, tarball);
    const printed = await exec(process.execPath, ['act.mjs', service.apiUrl, DEV_KEY]);
    expect(printed.split('\n')).toContain('Sent');
    expect((await statusesOf(/^stagehand$/)).length).toBe(1);
  });

  it('Playwright MCP gives an agent the session’s page', async () => {
    const exec = await installExample('playwright-mcp', folder.path, tarball);
    expect(await exec(process.execPath, ['agent.mjs', service.apiUrl, DEV_KEY])).toBe('Sent');
    expect((await statusesOf(/^mcp$/)).length).toBe(1);
  });

  it('browser-use lets its agent drive the session’s page', async () => {
    const pack = join(ROOT, 'src/apps/client/python/pack.mjs');
    const { stdout } = await run(process.execPath, [pack, folder.path]);
    const python = await installPython(folder.path, [stdout.trim(), 'browser-use==0.13.14']);
    const example = join(ROOT, 'test/examples/python/browser_use_example.py');
    const env = { ...process.env, ANONYMIZED_TELEMETRY: 'false', HOME: folder.path };
    const args = [example, service.apiUrl, DEV_KEY, `${address}/form`];
    const printed = (await run(python, args, { env })).stdout;
    expect(printed.trim().split('\n')).toContain('done - Sent');
    expect((await statusesOf(/^browser-use$/)).length).toBe(1);
  });
});
