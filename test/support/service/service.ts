import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Runtime } from '#src/start/embedded/runtime-file.ts';
import { giveCertificate, launch, settingsOf, type ServiceProcess } from './service-process.ts';

const READY_WITHIN_MS = 180_000;

export const DEV_KEY = 'bss_dev_test-key-of-the-organization-dev';

/** A running service, as its clients and `bss` use it. */
export type Service = {
  apiUrl: string;
  /** The addresses of its parts, as of the last start. */
  runtime: Runtime;
  dataDir: string;
  pid: number;
  /** All output since the last start. */
  output(): string;
  /** Sends a request as the development key's owner; `path` begins with /api. */
  request(method: string, path: string, body?: unknown, headers?: object): Promise<Answer>;
};

/**
 * The whole service as its operator runs it: a separate process, with free ports and its own
 * folder.
 */
export type RunningService = Service & {
  /** The variables that the test has set. */
  env: Record<string, string>;
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

/** How a service is started that is not alone, not of this release, or is to fail. */
export type Starting = {
  /** A service with MASTER_KEY, of which this is one more process: it has the same stores. */
  beside?: RunningService;
  /** `src/main.ts` of another release; default: this one's program. */
  main?: string | undefined;
  /** Its arguments. */
  args?: readonly string[];
  /** An end with an error is what the test is about, not a crash. */
  mayFail?: boolean;
};

/**
 * Starts the service and resolves at its ready line. Browsers are simulated unless `env` says
 * otherwise.
 * @throws with all its output if it ends before that or is not ready within 180 s
 */
export async function startService(
  given: Record<string, string> = {},
  { beside, main, args, mayFail }: Starting = {},
): Promise<RunningService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'bss-test-'));
  giveCertificate(dataDir);
  const env = { ...(beside === undefined ? {} : storesOf(beside)), ...given };
  const settings = await settingsOf(dataDir, {
    DEV_API_KEY: DEV_KEY,
    // A busy machine may take longer than usual to launch a real browser, and to save its profile.
    ...(env['BROWSERS'] === undefined ? {} : { CREATE_WAIT: '2m', SHUTDOWN_WITHIN: '2m' }),
    ...env,
  });
  const start = (more: Record<string, string>) =>
    untilReady(launch({ env: { ...settings, ...more }, main, args, mayFail }));
  let launched = await start({});
  const apiUrl = `http://127.0.0.1:${settings['PORT']}`;

  const service: RunningService = {
    apiUrl,
    runtime: await readRuntime(dataDir),
    dataDir,
    env,
    pid: launched.pid,
    output: () => launched.output(),
    request: (method, path, body, headers) => request(apiUrl + path, method, body, headers),
    end: (signal) => launched.end(signal),
    async startAgain(more = {}) {
      launched = await start(more);
      service.pid = launched.pid;
      service.runtime = await readRuntime(dataDir);
    },
    async [Symbol.asyncDispose]() {
      // The next start cleans up after a kill -9, as it does for an operator.
      if (launched.wasKilled()) await service.startAgain().catch(() => undefined);
      await launched.end();
      // Where it has ended by itself its NATS, which the kernel ends then, still writes.
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
  return service;
}

function storesOf({ runtime, env }: RunningService): Record<string, string> {
  const { MASTER_KEY = '' } = env;
  return { NATS_URL: runtime.nats_url, REDIS_URL: runtime.redis_url, MASTER_KEY };
}

async function untilReady(started: ServiceProcess): Promise<ServiceProcess> {
  const late = setTimeout(() => void started.end('SIGKILL'), READY_WITHIN_MS);
  await started.ready.finally(() => clearTimeout(late));
  return started;
}

/** What a service on the folder has written of itself. */
export async function readRuntime(dataDir: string): Promise<Runtime> {
  return JSON.parse(await readFile(join(dataDir, 'runtime.json'), 'utf8')) as Runtime;
}

/** Sends a request; its body is JSON, or text as it is. */
export async function request(
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
