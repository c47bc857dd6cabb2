import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { variables } from '#src/kernel/config/config.ts';
import { answersWith } from '#src/start/embedded/loopback.ts';
import type { Runtime } from '#src/start/embedded/runtime-file.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { failToStart, startMain, type MainProcess } from '#test/support/service/main-process.ts';

describe('a start', () => {
  test('without isolation is refused, unless that is allowed, and warns then', async () => {
    const serious = { BROWSERS: 'process', DEV_API_KEY: '', NODE_ENV: 'production' };
    const { code, said } = await failToStart(serious);
    expect(code).not.toBe(0);
    expect(said).toMatch(/BROWSERS: .* without isolation.*ALLOW_UNISOLATED=yes/);
    await using main = await startMain({ ...serious, ALLOW_UNISOLATED: 'yes', POOL_MIN_IDLE: '0' });
    await main.ready;
    expect(main.output()).toContain('without isolation');
  });

  test('takes the development key, is ready when every part answers, and is alone on its folder', async () => {
    await using main = await startMain({ DEV_API_KEY: DEV_KEY });
    const { promise, resolve } = Promise.withResolvers<number>();
    main.onOutput(() => {
      if (hasSpoken(main)) resolve(readiness(main));
    });
    const statuses = new Set<number>();
    while (!hasSpoken(main)) {
      const status = await statusWithKey(main);
      statuses.add(status);
      // Until it listens; then one request follows the other.
      if (status === 0) await delay(10);
    }
    expect(await promise).toBe(200);
    statuses.add(await statusWithKey(main));
    expect(statuses.has(200)).toBe(true);
    expect(statuses.has(401)).toBe(false);

    const file = join(main.dataDir, 'runtime.json');
    const runtime = JSON.parse(await readFile(file, 'utf8')) as Runtime;
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(runtime.pid).toBe(main.pid);
    await everyPartAnswers(runtime);

    const second = await failToStart({ DATA_DIR: main.dataDir });
    expect(second).toMatchObject({ code: 1, left: [] });
    expect(second.said).toContain(`DATA_DIR ${main.dataDir} is in use by another`);
    expect(second.said).toContain(`(process ${main.pid})`);
    expect(second.said).not.toMatch(IS_BUG);
    expect(await readiness(main)).toBe(200);

    // A connection that a client keeps alive does not hold its end.
    expect(await main.end()).toBe(0);
    expect(existsSync(file)).toBe(false);
    expect(main.processes()).toEqual([]);
  });

  test('that gets a signal before its program is loaded ends in order', async () => {
    // As the first process of a container it would not get it, and not end, without a handler.
    const hooks =
      "import { registerHooks } from 'node:module';" +
      'registerHooks({ resolve(name, context, next) {' +
      "if (name.endsWith('start.ts')) process.kill(process.pid, 'SIGTERM');" +
      'return next(name, context); } })';
    await using main = await startMain({
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}`,
    });
    expect([await main.ended, main.output()]).toEqual([0, expect.not.stringMatching(IS_BUG)]);
  });

  test('that gets SIGTERM before its first browser runs ends, and so do its browsers', async () => {
    await using shelf = await scratchDir();
    await chmod(shelf.path, 0o711); // browsers are another user's
    const slow = join(shelf.path, 'slow-chromium');
    await writeFile(slow, '#!/bin/sh\n[ "$1" = --version ] || exec sleep 600\n');
    await chmod(slow, 0o755);
    await using main = await startMain({ BROWSERS: 'process', CHROMIUM: slow });
    const isLaunching = () => main.processes().some((command) => command.startsWith('sleep '));
    await eventually(isLaunching, 'its first browser is being launched');
    expect(await main.end()).toBe(0);
    expect([main.processes(), hasSpoken(main)]).toEqual([[], false]);
    expect(await readdir(main.folder)).toEqual(['data']);
  });

  test('with --help only prints the table of variables', async () => {
    const { code, said, left, dataDir } = await failToStart({}, ['--help']);
    expect([code, left, existsSync(dataDir)]).toEqual([0, [], false]);
    for (const [name, { meaning }] of Object.entries(variables)) {
      expect(said).toContain(`  ${name} `);
      expect(said).toContain(meaning);
    }
  });
});

/** More rows are in `operations/start-refused.long.test.ts` and in `test/integration/config`. */
describe('a start that cannot succeed prints the reason and leaves no process:', () => {
  test('no program at CHROMIUM', async () => {
    const outcome = await failToStart({ BROWSERS: 'process', CHROMIUM: '/nonexistent/program' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain('CHROMIUM: /nonexistent/program is not a program');
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('a port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const outcome = await failToStart({ GATEWAY_PORT: `${port}` });
    other.close();
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`GATEWAY_PORT: 127.0.0.1:${port} is taken by another program`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('a data folder that cannot be created', async () => {
    await using shelf = await scratchDir();
    await writeFile(join(shelf.path, 'file'), '');
    const outcome = await failToStart({ DATA_DIR: join(shelf.path, 'file', 'data') });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`DATA_DIR ${shelf.path}/file/data cannot be written: `);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('a variable with an invalid value', async () => {
    const outcome = await failToStart({ CREATE_WAIT: 'a while' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toBe(
      'CREATE_WAIT: a while is not like 500ms, 3s, 5m, 72h or 30d\n(--help lists all variables)\n',
    );
    expect(existsSync(outcome.dataDir)).toBe(false);
  });
});

/** A stack, or an error that says nothing of itself. */
const IS_BUG = /^ +at |^Error:|^TypeError:/m;

function hasSpoken(main: MainProcess): boolean {
  return /"msg":"ready"/.test(main.output());
}

/** The status of /api/ready; 0: no process listens. */
function readiness(main: MainProcess): Promise<number> {
  return statusOf(main, '/api/ready');
}

/** The status of a request with the development key; 0: no process listens. */
function statusWithKey(main: MainProcess): Promise<number> {
  return statusOf(main, '/api/status', { authorization: `Bearer ${DEV_KEY}` });
}

async function statusOf({ env }: MainProcess, path: string, headers = {}): Promise<number> {
  try {
    return (await fetch(`http://127.0.0.1:${env['PORT']}${path}`, { headers })).status;
  } catch {
    return 0;
  }
}

async function everyPartAnswers(runtime: Runtime): Promise<void> {
  expect((await fetch(`${runtime.api_url}/api/health`)).status).toBe(200);
  const plain = runtime.gateway_ws_url?.replace('ws:', 'http:') ?? '';
  expect((await fetch(`${plain}/no-such-page`)).status).toBe(404);
  expect(await statusOverTls(runtime.gateway_wss_url?.replace('wss:', 'https:') ?? '')).toBe(404);
  const { username: user, password: pass } = new URL(runtime.nats_url);
  const hello = `CONNECT ${JSON.stringify({ verbose: false, user, pass })}\r\nPING\r\n`;
  expect(await answersWith(portOf(runtime.nats_url), hello, /^INFO [^]*PONG/)).toBe(true);
  expect(await answersWith(portOf(runtime.redis_url), 'PING\r\n', /^\+PONG/)).toBe(true);
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** The status of a page that is not there; the certificate is the service's own. */
async function statusOverTls(url: string): Promise<number> {
  const asked = request(`${url}/no-such-page`, { rejectUnauthorized: false }).end();
  const [answer] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
  answer.resume();
  return answer.statusCode ?? 0;
}
