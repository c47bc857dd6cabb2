import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from '#src/embedded/runtime-file.ts';
import { freePorts } from '#test/support/servers/ports.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
/** Characters of what a service has printed last. */
const TAIL = 2_000;
const READY_WITHIN_MS = 180_000;
/** The ready line of its log, or that of the terminal if the log level is higher. */
const READY = /"msg":"ready"|is ready: /;

export const DEV_KEY = 'bss_dev_test-key-of-the-organization-dev';

/**
 * The whole service as its operator runs it: a separate process, with free ports and its own
 * folder.
 */
export type RunningService = {
  apiUrl: string;
  /** The addresses of its parts, as of the last start. */
  runtime: Runtime;
  dataDir: string;
  pid: number;
  /** All output since the last start. */
  output(): string;
  /** Sends a request as the development key's owner; `path` begins with /api. */
  request(method: string, path: string, body?: unknown, headers?: object): Promise<Answer>;
  /** Ends the process and resolves with its exit code (null: killed). */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /** Starts it again on the same folder and ports. */
  startAgain(env?: Record<string, string>): Promise<void>;
} & AsyncDisposable;

/** `body` is the answer's JSON, untyped; tests read the fields that they expect. */
export type Answer = {
  status: number;
  headers: Headers; // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
};

/**
 * Starts the service and resolves at its ready line. Browsers are simulated unless `env` says
 * otherwise.
 * @param main `src/main.ts` of another release; default: of this one
 * @throws with all its output if it ends before that or is not ready within 180 s
 */
export async function startService(
  env: Record<string, string> = {},
  main: string = MAIN,
): Promise<RunningService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bss-test-'));
  const [port, gatewayPort, tlsPort] = await freePorts(3);
  const settings = {
    PORT: `${port}`,
    GATEWAY_PORT: `${gatewayPort}`,
    GATEWAY_TLS_PORT: `${tlsPort}`,
    DATA_DIR: dataDir,
    BROWSERS: 'simulated',
    SIMULATED_LAUNCH_MS: '20ms',
    DEV_API_KEY: DEV_KEY,
    // A busy machine may take longer than usual to launch a real browser, and to save its profile.
    ...(env['BROWSERS'] === undefined ? {} : { CREATE_WAIT: '2m', SHUTDOWN_WITHIN: '2m' }),
    ...env,
  };
  let launched = await launch(settings, main);
  const apiUrl = `http://127.0.0.1:${port}`;

  const service: RunningService = {
    apiUrl,
    runtime: await readRuntime(dataDir),
    dataDir,
    pid: launched.pid,
    output: () => launched.output(),
    request: (method, path, body, headers) => request(apiUrl + path, method, body, headers),
    end: (signal) => launched.end(signal),
    async startAgain(more = {}) {
      launched = await launch({ ...settings, ...more }, main);
      service.pid = launched.pid;
      service.runtime = await readRuntime(dataDir);
    },
    async [Symbol.asyncDispose]() {
      // The next start cleans up after a kill -9, as it does for an operator.
      if (launched.wasKilled()) await service.startAgain().catch(() => undefined);
      const code = await launched.end('SIGTERM');
      if (code !== 0)
        process.stderr.write(`the service ended (${code}):\n${launched.output().slice(-TAIL)}\n`);
      // Where it has ended by itself its NATS, which the kernel ends then, still writes.
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
  return service;
}

async function launch(settings: Record<string, string>, main: string) {
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  let isKilled = false;
  const ready = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      if (READY.test(printed)) ready.resolve();
    });
  child.once('exit', (code, signal) =>
    ready.reject(new Error(`the service ended (${code ?? signal}):\n${printed}`)),
  );
  const late = setTimeout(() => {
    child.kill('SIGTERM');
    ready.reject(new Error(`not ready within ${READY_WITHIN_MS} ms:\n${printed}`));
  }, READY_WITHIN_MS);
  await ready.promise.finally(() => clearTimeout(late));

  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    isKilled = signal === 'SIGKILL';
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    return child.exitCode;
  }
  return { pid: child.pid ?? 0, output: () => printed, end, wasKilled: () => isKilled };
}

async function readRuntime(dataDir: string): Promise<Runtime> {
  return JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')) as Runtime;
}

async function request(
  url: string,
  method: string,
  body?: unknown,
  headers: object = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${DEV_KEY}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed = text === '' ? {} : JSON.parse(text);
  return { status: response.status, headers: response.headers, body: parsed };
}

/**
 * Resolves with the first value that is neither null nor false. The bound is for a value that never
 * comes, not for a slow machine: only a time that the product promises is shorter.
 *
 * The pause between two questions grows with the time that has passed and with the time that a
 * question takes, from 20 to 250 ms: a command run as often as possible would slow what it waits
 * for.
 */
export async function eventually<Value>(
  ask: () => Promise<Value | null | false> | Value | null | false,
  what: string,
  withinMs = 120_000,
): Promise<Value> {
  const begunAt = performance.now();
  for (;;) {
    const askedAt = performance.now();
    const value = await ask();
    if (value !== null && value !== false) return value;
    const now = performance.now();
    const passed = now - begunAt;
    if (passed > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    const pauseMs = Math.min(250, Math.max(20, now - askedAt, passed / 20));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
