import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig, variables, type VariableName } from '#src/config/config.ts';
import { answersWith } from '#src/embedded/loopback.ts';
import type { Runtime } from '#src/embedded/runtime-file.ts';
import { scratchDir } from '#test/support/scratch.ts';
import { freePorts } from '#test/support/servers/ports.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';
import { failToStart, startMain, type MainProcess } from '#test/support/service/main-process.ts';

describe('a start', () => {
  test.each([{ NODE_ENV: 'production' }, { HOST: '0.0.0.0' }])(
    'with %j is refused with process browsers, unless they are allowed, and warns then',
    async (env) => {
      const serious = { BROWSERS: 'process', ROLES: 'provisioner', DEV_API_KEY: '', ...env };
      const { code, said } = await failToStart(serious);
      expect(code).not.toBe(0);
      expect(said).toMatch(/BROWSERS: .* without isolation.*ALLOW_UNISOLATED=yes/);
      await using main = await startMain({ ...serious, ROLES: 'all', ALLOW_UNISOLATED: 'yes' });
      await eventually(() => hasSpoken(main), 'it is ready');
      expect(main.output()).toContain('without isolation');
    },
  );

  test('prints that it is ready when every part answers, not before', async () => {
    await using main = await startMain();
    const { promise, resolve } = Promise.withResolvers<number>();
    main.onOutput((said) => {
      if (/"msg":"ready"|is ready: /.test(said)) resolve(readiness(main));
    });
    await eventually(async () => (await readiness(main)) !== 0 || hasSpoken(main), 'it listens');
    expect(await promise).toBe(200);
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

  test('takes the development key from its first answer on', async () => {
    await using main = await startMain({ DEV_API_KEY: DEV_KEY });
    const statuses = new Set<number>();
    while (!hasSpoken(main)) statuses.add(await statusWithKey(main));
    statuses.add(await statusWithKey(main));
    expect(statuses.has(200)).toBe(true);
    expect(statuses.has(401)).toBe(false);
  });

  test('writes the addresses of its parts to runtime.json and removes that file at its end', async () => {
    await using main = await startMain();
    const file = join(main.dataDir, 'runtime.json');
    await eventually(() => hasSpoken(main), 'it is ready');
    const runtime = JSON.parse(await readFile(file, 'utf8')) as Runtime;
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(runtime.pid).toBe(main.pid);
    expect((await fetch(`${runtime.api_url}/api/health`)).status).toBe(200);
    const plain = runtime.gateway_ws_url?.replace('ws:', 'http:') ?? '';
    expect((await fetch(`${plain}/no-such-page`)).status).toBe(404);
    expect(await statusOverTls(runtime.gateway_wss_url?.replace('wss:', 'https:') ?? '')).toBe(404);
    const { username: user, password: pass } = new URL(runtime.nats_url);
    const hello = `CONNECT ${JSON.stringify({ verbose: false, user, pass })}\r\nPING\r\n`;
    expect(await answersWith(portOf(runtime.nats_url), hello, /^INFO [^]*PONG/)).toBe(true);
    expect(await answersWith(portOf(runtime.redis_url), 'PING\r\n', /^\+PONG/)).toBe(true);

    // Its parts take a moment to end; a connection that a client keeps alive does not hold it.
    const askedAt = performance.now();
    expect(await main.end()).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(30_000);
    expect(existsSync(file)).toBe(false);
    expect(main.processes()).toEqual([]);
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

describe('a start that cannot succeed prints the reason and leaves no process:', () => {
  const programs = ['CHROMIUM', 'XTIGERVNC', 'NATS_SERVER', 'REDIS_SERVER'];
  test.each(programs)('no program at %s', async (variable) => {
    const outcome = await failToStart({ BROWSERS: 'process', [variable]: '/nonexistent/program' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`${variable}: /nonexistent/program is not a program`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('a nats-server that is too old', async () => {
    await using shelf = await scratchDir();
    const old = join(shelf.path, 'nats-server');
    await writeFile(old, '#!/bin/sh\necho nats-server: v2.10.20\n');
    await chmod(old, 0o755);
    const outcome = await failToStart({ NATS_SERVER: old });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`NATS_SERVER: ${old} is 2.10.20; 2.12 or later is required`);
  });

  const ours = ['PORT', 'GATEWAY_PORT', 'GATEWAY_TLS_PORT', 'NATS_PORT', 'METRICS_PORT'];
  test.each(ours)('%s is taken', async (variable) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const outcome = await failToStart({ [variable]: `${port}` });
    other.close();
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`${variable}: 127.0.0.1:${port} is taken by another program`);
    expect(outcome.said).not.toMatch(IS_BUG);
  });

  test('two configured ports are the same', async () => {
    const [port] = await freePorts(1);
    const outcome = await failToStart({ GATEWAY_PORT: `${port}`, GATEWAY_TLS_PORT: `${port}` });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`GATEWAY_TLS_PORT: 127.0.0.1:${port} is GATEWAY_PORT’s already`);
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

  test('a data folder in use by another service, which goes on', async () => {
    await using first = await startMain();
    await eventually(() => hasSpoken(first), 'it is ready');
    const outcome = await failToStart({ DATA_DIR: first.dataDir });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toContain(`DATA_DIR ${first.dataDir} is in use by another`);
    expect(outcome.said).toContain(`(process ${first.pid})`);
    expect(outcome.said).not.toMatch(IS_BUG);
    expect(await readiness(first)).toBe(200);
  });

  test('NATS_URL without MASTER_KEY', async () => {
    const outcome = await failToStart({ NATS_URL: 'nats://127.0.0.1:4222' });
    expect(outcome).toMatchObject({ code: 1, left: [] });
    expect(outcome.said).toMatch(/^MASTER_KEY: needed beside NATS_URL/);
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

const ports = ['0', '65536', '-1', '80a', '1.5', '1e3', '0x50', 'http', '８０'];
const durations = ['15', '15 s', '1.5s', '-1s', '1w', 's', '1h30m', '1H', '9999999999s', 'soon'];
/** test/config has each in every other way that it can be wrong. */
const malformed: Partial<Record<VariableName, string[]>> = {
  PORT: ports,
  GATEWAY_PORT: ports,
  GATEWAY_TLS_PORT: ports,
  PUBLIC_GATEWAY_WS_URL: ['http://h', 'wss://', 'h:80', 'ws://', 'ws://h/?a=b', 'ws://h/#a'],
  PUBLIC_GATEWAY_WSS_URL: ['https://h', 'ws://h', 'h', 'wss://', 'wss://h?a', 'wss://h#a'],
  NATS_URL: ['127.0.0.1:4222', 'http://h:4222', 'nats://', 'nats//h', 'nats://h:port'],
  REDIS_URL: ['127.0.0.1:6379', 'http://h:6379', 'redis://', 'redis:/h', 'redis://h:99999'],
  ROLES: ['none', 'api,', 'api;gateway', 'All', 'api,sweeper'],
  BROWSERS: ['real', 'dockers', 'Process', 'process,simulated'],
  SIMULATED_LAUNCH_MS: ['fast', '-20', '1.5', '20 ms', '1w', '2147483648ms'],
  SIMULATED_FAIL_RATE: ['-0.1', '1.1', '50%', 'half', '0x1', 'NaN', '1e-1'],
  POOL_MIN_IDLE: ['-1', '1.5', 'one', '5'],
  POOL_MAX: ['0', '-1', '1.5', 'many', '1000001'],
  CREATE_WAIT: [...durations, '597h'],
  QUEUE_AFTER: durations,
  QUEUE_TIMEOUT: durations,
  QUEUE_MAX: ['-1', '1.5', 'some', '1000001'],
  QUEUE_MAX_PER_ORGANIZATION: ['-1', '1.5', 'some', '1000001'],
  MAX_LIFETIME: durations,
  TIERS: [
    ...['{', '[]', 'null', '7', '"max"', '{"huge":{}}', '{"max":[]}', '{"max":{"sessions":1}}'],
    ...['-1', '1.5', '"1"', 'null', '1e400'].map((credits) => `{"max":{"credits":${credits}}}`),
  ],
  NATS_PORT: ports,
  PUBLIC_NATS_URL: ['127.0.0.1:4222', 'http://h:4222', 'nats://', 'nats://h/?a=b'],
  NATS_ISSUER_SEED: ['SA', `SU${'A'.repeat(56)}`, `SA${'a'.repeat(56)}`, 'A'.repeat(58)],
  POOL_MAX_IDLE: ['-1', '1.5', 'some', '5'],
  EVENT_STREAMS_MAX: ['0', '-1', '1.5', 'many', '100001'],
  EVENT_STREAMS_PER_ORGANIZATION: ['0', '-1', '1.5', 'many', '100001'],
  DOCKER_HOST: ['docker', 'unix://', 'unix:relative', 'ftp://h:1', 'tcp://'],
  DOCKER_NETWORK: ['-a', 'a b', 'a/b', 'x'.repeat(64)],
  DOCKER_PUBLISH: ['host', '0.0.0.0', '::', '10.0.0'],
  DOCKER_DNS: ['dns', '10.0.0', '10.0.0.1,', '::1'],
  DOCKER_ISOLATION: ['none', 'Required'],
  DOCKER_ON_SHUTDOWN: ['keep', 'Leave'],
  BROWSER_MEMORY_MB: ['191', '-1', '1.5', 'much', '1048577'],
  BROWSER_CPUS: ['0', '0.09', '-1', '1025', 'two'],
  BROWSER_PIDS: ['63', '-1', '1.5', '100001'],
  DEV_API_KEY: ['short', 'has a space in the middle', 'ключ-ключ-ключ-ключ', 'x'.repeat(513)],
  JWT_SECRET: ['x'.repeat(31), `${'x'.repeat(31)} x`, 'x'.repeat(513)],
  JWT_JWKS_URL: ['login.example', 'ftp://h/keys', 'https://', 'https://user:word@h/keys'],
  JWT_ALGORITHMS: ['RS256', 'HS256', 'none'],
  JWT_ISSUER: ['https://login.example'],
  JWT_AUDIENCE: ['browser-sessions'],
  MASTER_KEY: ['x'.repeat(31), `${'x'.repeat(31)} x`, 'x'.repeat(513)],
  METRICS_PORT: ports,
  METRICS_TOKEN: ['short', 'has a space in the middle', 'x'.repeat(513)],
  OPERATOR_TOKEN: ['short', 'has a space in the middle', 'x'.repeat(513)],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['collector:4318', 'grpc://h:4317', 'http://', 'http://h/?a=b'],
  LOG_LEVEL: ['verbose', 'INFO', '30'],
};

describe.each(Object.entries(malformed))('%s', (variable, values) => {
  test.each(values)('is not %j', (value) => {
    // What is Docker's alone is read where Docker is asked for.
    const docker = /^(DOCKER|BROWSER)_/.test(variable) ? { BROWSERS: 'docker' } : {};
    expect(() => readConfig({ ...docker, [variable]: value })).toThrow(
      expect.objectContaining({
        name: 'BadConfig',
        message: expect.stringMatching(`^${variable}: `),
      }),
    );
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
