import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createProcessBrowsers } from '#src/browsers/process/process-browsers.ts';
import type { BrowserExit, BrowserSpec, RunningBrowser } from '#src/browsers/browsers.ts';
import { LaunchFailed } from '#src/browsers/browsers.ts';
import { BrowsersUnavailable } from '#src/browsers/process/programs.ts';
import { colourAt, dialRfb } from '#test/support/clients/rfb-client.ts';
import {
  attachPage,
  evaluate,
  openCdp,
  openPlace,
  openProcessBrowsers,
  realPrograms,
} from '#test/support/browsers/browsers.fixture.ts';

type Opened = Awaited<ReturnType<typeof openProcessBrowsers>>;

const SCREEN = { width: 800, height: 600 };
const PASSWORD = 'aB3dE6gH';
let launches = 0;

describe('a real browser', () => {
  let opened: Opened;
  let browser: RunningBrowser;
  beforeAll(async () => {
    process.env['SERVICE_SECRET'] = 'not for pages';
    opened = await openProcessBrowsers();
    browser = await opened.browsers.launch(aSpec());
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test('shows the page that CDP leads it to', async () => {
    using cdp = await openCdp(browser.cdp);
    using viewer = await dialRfb(browser.vnc, PASSWORD);
    const session = await attachPage(cdp);
    const url = 'data:text/html,<body style="background:rgb(200,30,40)">';
    await cdp.send('Page.navigate', { url }, session);
    const colour = async () => colourAt(viewer, await viewer.framebuffer(), 400, 400);
    await expect.poll(colour).toBe('#c81e28');
  });

  test('has the version that its server tells, and the age of its program', async () => {
    using cdp = await openCdp(browser.cdp);
    const { version, builtAt } = opened.browsers.build();
    const { product } = await cdp.send('Browser.getVersion');
    expect(product).toMatch(new RegExp(`/${version}$`));
    expect(builtAt).toBeGreaterThan(Date.UTC(2020, 0, 1));
    expect(builtAt).toBeLessThanOrEqual(Date.now());
  });

  test('tells what it stores: its profile, of some hundred KiB at first', async () => {
    const bytes = (await opened.browsers.storedBytes?.(browser.workloadId)) ?? 0;
    expect(bytes).toBeGreaterThan(20_000);
    expect(bytes).toBeLessThan(64 * 1024 ** 2);
    expect(await opened.browsers.storedBytes?.('wl_none')).toBeNull();
  });

  test('is adequately sandboxed', async () => {
    using cdp = await openCdp(browser.cdp);
    const session = await attachPage(cdp);
    await cdp.send('Page.navigate', { url: 'chrome://sandbox' }, session);
    const words = () => evaluate(cdp, session, 'document.body.innerText');
    await expect.poll(words).toContain('You are adequately sandboxed.');
  });

  test('shares no cookies, no storage and no profile with the next', async () => {
    const next = await opened.browsers.launch(aSpec());
    using one = await openCdp(browser.cdp);
    using two = await openCdp(next.cdp);
    const cookie = { name: 'who', value: 'one', domain: 'site.test', path: '/', expires: 4e9 };
    await one.send('Storage.setCookies', { cookies: [cookie] });
    expect(await one.send('Storage.getCookies')).toMatchObject({ cookies: [{ value: 'one' }] });
    expect(await two.send('Storage.getCookies')).toEqual({ cookies: [] });
    const folders = opened
      .processes()
      .flatMap(({ args }) => args.filter((arg) => arg.startsWith('--user-data-dir=')));
    expect(new Set(folders).size).toBe(2);
    await opened.browsers.stop(next.workloadId);
  });

  test('has none of the service’s environment variables and is not root', () => {
    const processes = opened.processes();
    expect(processes.length).toBeGreaterThan(5);
    expect(processes.filter(({ environment }) => environment.includes('SERVICE_SECRET'))).toEqual(
      [],
    );
    expect(processes.filter(({ uid }) => uid === 0)).toEqual([]);
  });

  test('listens on loopback alone, and its display accepts only clients with the cookie', async () => {
    const display = opened.processes().find(({ args }) => args.includes('-displayfd'))?.args[1];
    const client = connect(`/tmp/.X11-unix/X${display?.slice(1)}`);
    // X's first message: little-endian, version 11.0, no authorization.
    client.write(Buffer.from([0x6c, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    // The answer may come in pieces; then the display closes the connection.
    const answer = Buffer.concat(await client.toArray());
    expect(answer.toString('latin1')).toContain('Authorization required');
    expect(browser.cdp.host).toBe('127.0.0.1');
    expect(browser.vnc.host).toBe('127.0.0.1');
  });

  test('ends with its X server, and its exit is reported', async () => {
    await using other = await openProcessBrowsers();
    const exits: BrowserExit[] = [];
    other.browsers.onExit((exit) => exits.push(exit));
    const { workloadId } = await other.browsers.launch(aSpec());
    const server = other.processes().find(({ args }) => args.includes('-displayfd'));
    process.kill(server?.pid ?? Number.NaN, 'SIGTERM');
    await expect.poll(() => exits.length).toBe(1);
    expect(exits[0]).toMatchObject({ workloadId, reason: 'browser_crashed', exitCode: 0 });
    expect(exits[0]?.detail).toContain('X server');
    expect(other.traces()).toEqual([]);
  });
});

test('a SIGTERM to its Chromium is no close, though Chromium exits with 0', async () => {
  await using opened = await openProcessBrowsers();
  const exits: BrowserExit[] = [];
  opened.browsers.onExit((exit) => exits.push(exit));
  const { workloadId } = await opened.browsers.launch(aSpec());
  const chromium = opened
    .processes()
    .find(({ args }) => args.some((arg) => arg.startsWith('--remote-debugging-port')));
  process.kill(chromium?.pid ?? Number.NaN, 'SIGTERM');
  await expect.poll(() => exits.length).toBe(1);
  expect(exits[0]).toMatchObject({ workloadId, reason: 'browser_crashed', exitCode: 0 });
  expect(exits[0]?.detail).toContain('Chromium: exit code 0');
  expect(opened.traces()).toEqual([]);
});

describe('a launch', () => {
  test('fails where its pages could not be in the locale', async () => {
    const chromium = await aProgram('exec sleep 100');
    await using opened = await openProcessBrowsers({ chromium });
    const launched = opened.browsers.launch({ ...aSpec(), locale: 'de-CH' });
    await expect(launched).rejects.toThrow('pages cannot be in de-CH');
    expect(opened.traces()).toEqual([]);
  });

  test.each(['chromium', 'xvnc'] as const)('fails with the last output of %s', async (name) => {
    const path = await aProgram('echo "first words" >&2; echo "no usable sandbox" >&2; exit 3');
    await using opened = await openProcessBrowsers({ [name]: path });
    const failure = await opened.browsers.launch(aSpec()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LaunchFailed);
    expect(failure).toMatchObject({
      message: expect.stringContaining('exit code 3'),
      detail: 'first words\nno usable sandbox',
    });
    expect(opened.traces()).toEqual([]);
  });

  test.each(['chromium', 'xvnc'])('has a time limit: a hanging %s is killed', async (name) => {
    const path = await aProgram('sleep 100 & (trap "" TERM; sleep 100) & sleep 100');
    await using opened = await openProcessBrowsers({ [name]: path, launchTimeoutMs: 300 });
    await expect(opened.browsers.launch(aSpec())).rejects.toThrow('not ready within 300 ms');
    expect(opened.traces()).toEqual([]);
  });

  test('chooses another display if the first one is taken', async () => {
    const { xvnc } = realPrograms();
    const first = 'mkdir $open/seen 2>/dev/null && { echo "server already running" >&2; exit 1; }';
    await using opened = await openProcessBrowsers({
      xvnc: await aProgram(`${first}\nexec ${xvnc} "$@"`),
    });
    const { vnc } = await opened.browsers.launch(aSpec());
    using viewer = await dialRfb(vnc, PASSWORD);
    expect(viewer.width).toBe(SCREEN.width);
  });

  test('waits for an X server that starts late', async () => {
    const { xvnc } = realPrograms();
    const late = await aProgram(`sleep 2\nexec ${xvnc} "$@"`);
    await using opened = await openProcessBrowsers({ xvnc: late });
    const { vnc } = await opened.browsers.launch(aSpec());
    using viewer = await dialRfb(vnc, PASSWORD);
    expect(viewer.width).toBe(SCREEN.width);
  });

  test('is impossible where a program is missing or not executable: creating the browsers fails', async () => {
    const place = await openPlace();
    onTestFinished(() => place[Symbol.asyncDispose]());
    const xvnc = join(place.tmp, 'not-executable');
    await writeFile(xvnc, '#!/bin/sh', { mode: 0o644 });
    const { stateDir } = place;
    const missing = { ...realPrograms(), stateDir, chromium: 'no-such-program', xvnc };
    const failure = createProcessBrowsers(missing);
    await expect(failure).rejects.toThrow(BrowsersUnavailable);
    await expect(failure).rejects.toThrow(
      /apt-get install chromium.*no-such-program.*not-executable/,
    );
  });
});

function aSpec(): BrowserSpec {
  launches += 1;
  return { workloadId: `wl_real_${launches}`, vncPassword: PASSWORD, screen: SCREEN };
}

/** A test program that the browsers' user may run. */
async function aProgram(lines: string): Promise<string> {
  const place = await openPlace();
  onTestFinished(() => place[Symbol.asyncDispose]());
  const path = join(place.tmp, 'program');
  await mkdir(join(place.tmp, 'open'));
  await chmod(join(place.tmp, 'open'), 0o777);
  await writeFile(path, `#!/bin/sh\nopen=${place.tmp}/open\n${lines}\n`);
  await chmod(path, 0o755);
  return path;
}
