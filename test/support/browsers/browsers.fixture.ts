import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { within } from '#src/kernel/async/timeout.ts';
import {
  connectToBrowser,
  createLinkKeys,
  driverPath,
  type BrowserAddress,
} from '#src/browsers/link/browser-link.ts';
import { openWindow } from '#src/browsers/chromium/window.ts';
import { createProcessBrowsers } from '#src/browsers/process/process-browsers.ts';
import { createSimulatedBrowsers } from '#src/browsers/simulated/simulated-browsers.ts';
import type { Browsers, RunningBrowser } from '#src/browsers/browsers.ts';
import type { Programs } from '#src/browsers/process/programs.ts';

/** The bound of a launch is for what hangs: a browser of a busy machine starts slowly. */
export const LAUNCH_MS = 120_000;

export type OpenedBrowsers = AsyncDisposable & {
  browsers: Browsers;
  /** Ends a browser as an accident would. */
  crash(workloadId: string): void;
  /** The processes and files of these browsers on this host. */
  traces(): string[];
};

/** The programs that the tests' setup has found. */
export function realPrograms(): Programs {
  const { CHROMIUM = '', XTIGERVNC = '', CHROMEDRIVER = '' } = process.env;
  return { chromium: CHROMIUM, xvnc: XTIGERVNC, chromedriver: CHROMEDRIVER };
}

/** Where the drivers of these process browsers take commands. */
export function driverPathOf(workloadId: string): string {
  return driverPath(createLinkKeys(Buffer.alloc(32))(workloadId));
}

/** Real browsers in a temporary folder of their own; some programs may be replaced. */
export async function openProcessBrowsers(
  changes: Partial<Programs> & { launchTimeoutMs?: number } = {},
): Promise<OpenedBrowsers & { stateDir: string; processes(): RealProcess[] }> {
  const place = await openPlace();
  const { stateDir } = place;
  const options = {
    ...realPrograms(),
    launchTimeoutMs: LAUNCH_MS,
    stateDir,
    driverPathOf,
    ...changes,
  };
  const browsers = await place.within(() => createProcessBrowsers(options));
  return {
    browsers,
    stateDir,
    processes: place.processes,
    traces: place.traces,
    crash: (workloadId) => {
      const record = readFileSync(join(stateDir, `${workloadId}.json`), 'utf8');
      const { folder } = JSON.parse(record) as { folder: string };
      const main = place
        .processes()
        .find((p) => p.args.includes(`--user-data-dir=${folder}/profile`));
      if (main === undefined) throw new Error(`no Chromium of ${workloadId}`);
      process.kill(main.pid, 'SIGKILL');
    },
    [Symbol.asyncDispose]: async () => {
      await browsers[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

export async function openSimulatedBrowsers(failRate = 0): Promise<OpenedBrowsers> {
  const browsers = await createSimulatedBrowsers({ launchMs: 5, failRate });
  return {
    browsers,
    crash: (workloadId) => browsers.crash(workloadId),
    traces: () => [],
    [Symbol.asyncDispose]: () => browsers[Symbol.asyncDispose](),
  };
}

export type RealProcess = { pid: number; args: string[]; environment: string; uid: number };

/** A temporary folder for browsers and their records, with a view of its files and processes. */
export async function openPlace() {
  const tmp = await mkdtemp(join(tmpdir(), 'bss-t-'));
  await chmod(tmp, 0o711);
  const stateDir = await mkdtemp(join(tmpdir(), 'bss-state-'));
  const displays = new Set<string>();

  function processes(): RealProcess[] {
    const all = readdirSync('/proc').map(Number).filter(Number.isInteger).map(readProcess);
    const living = all.filter((process) => process !== null);
    const named = living.filter((p) => `${p.args.join(' ')}${p.environment}`.includes(tmp));
    const sessions = new Set(named.map((process) => process.session));
    for (const { args } of named) if (args.includes('-rfbport')) displays.add(args[1] ?? '');
    return living.filter((process) => sessions.has(process.session));
  }

  return {
    tmp,
    stateDir,
    processes,
    traces: () => [
      ...processes().map(({ pid, args }) => `${pid}: ${args.slice(0, 3).join(' ')}`),
      ...readdirSync(tmp),
      ...readdirSync(stateDir),
      ...[...displays].flatMap(displayFiles).filter((path) => existsSync(path)),
    ],
    /** Runs `act` while TMPDIR of this process is this folder. */
    within: async <T>(act: () => Promise<T>): Promise<T> => {
      const { TMPDIR } = process.env;
      process.env['TMPDIR'] = tmp;
      try {
        return await act();
      } finally {
        if (TMPDIR === undefined) delete process.env['TMPDIR'];
        else process.env['TMPDIR'] = TMPDIR;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await rm(tmp, { recursive: true });
      await rm(stateDir, { recursive: true });
    },
  };
}

function displayFiles(display: string): string[] {
  const number = display.slice(1);
  return [`/tmp/.X${number}-lock`, `/tmp/.X11-unix/X${number}`];
}

/** A living process; null where it has ended or is a zombie. */
function readProcess(pid: number): (RealProcess & { session: number }) | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return null;
    const uid = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return { pid, args, session: Number(session), uid: Number(uid), environment: environ(pid) };
  } catch {
    return null;
  }
}

/** The environment of a process; '' where only root may read it (sandboxed processes). */
function environ(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}

export type Cdp = Disposable & {
  /** @throws Error with CDP's own message where the browser refuses the command */
  send(method: string, params?: object, sessionId?: string): Promise<Record<string, unknown>>;
};

/** Asks a browser's CDP port over HTTP. */
export async function getFrom(
  address: BrowserAddress,
  path: string,
): Promise<{ status: number | undefined; text: string }> {
  const headers = { host: `${address.host}:${address.port}` };
  const request = get({ path, headers, createConnection: () => connectToBrowser(address) });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, text: await text(response) };
}

/**
 * The longest a browser may take for one answer. Where its Pod is gone with its network, nothing
 * tells the client: its kernel would send the question again for a quarter of an hour.
 */
const ANSWER_MS_MAX = 60_000;

/** Connects a client to a browser's CDP socket. */
export async function openCdp(address: RunningBrowser['cdp']): Promise<Cdp> {
  const { host, port, path } = address;
  const createConnection = () => connectToBrowser(address);
  const bounded = { createConnection, handshakeTimeout: ANSWER_MS_MAX };
  const socket = new WebSocket(`ws://${host}:${port}${path}`, bounded);
  await once(socket, 'open');
  let lastId = 0;
  return {
    send: async (method, params = {}, sessionId) => {
      if (socket.readyState !== WebSocket.OPEN) throw new Error('the CDP socket has closed');
      const id = (lastId += 1);
      const answer = Promise.withResolvers<Answer>();
      const hear = (data: Buffer): void => {
        const message = JSON.parse(data.toString()) as Answer;
        if (message.id === id) answer.resolve(message);
      };
      const close = (): void => answer.reject(new Error('the CDP socket has closed'));
      socket.on('message', hear);
      socket.once('close', close);
      socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
      const { result, error } = await within(ANSWER_MS_MAX, answer.promise).finally(() => {
        socket.off('message', hear);
        socket.off('close', close);
      });
      if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
      return result ?? {};
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}

type Answer = {
  id?: number;
  result?: Record<string, unknown>;
  error?: { code: number; message: string };
};

/** Attaches to the page that is open from the start. @returns the CDP session id */
export async function attachPage(cdp: Cdp): Promise<string> {
  const { targetInfos } = (await cdp.send('Target.getTargets')) as {
    targetInfos: { type: string; targetId: string }[];
  };
  const page = targetInfos.find(({ type }) => type === 'page');
  const params = { targetId: page?.targetId, flatten: true };
  return String((await cdp.send('Target.attachToTarget', params))['sessionId']);
}

/** Evaluates a script in the page. @returns its value */
export async function evaluate(cdp: Cdp, session: string, expression: string): Promise<unknown> {
  const params = { expression, awaitPromise: true };
  const { result } = await cdp.send('Runtime.evaluate', params, session);
  return (result as { value?: unknown }).value;
}

/** The sizes of screen and window as the page sees them. */
export async function sizesOf({ cdp }: Pick<RunningBrowser, 'cdp'>) {
  using window = await openWindow(cdp, AbortSignal.timeout(20_000));
  return await window.sizes();
}
