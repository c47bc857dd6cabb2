import { once } from 'node:events';
import { chownSync, mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { WebSocket } from 'ws';
import { sleep } from '#src/kernel/async/sleep.ts';
import { chromiumFlags } from '#src/browsers/chromium/flags.ts';
import { startChild, type Child } from '#src/browsers/process/child.ts';
import {
  chooseDisplay,
  displayListens,
  removeDisplayFiles,
  startDisplay,
  writeCookie,
  writeKeymap,
  writePassword,
} from '#src/browsers/process/display.ts';
import { prepareFolders } from '#src/browsers/process/programs.ts';
import { endProcesses } from '#src/browsers/process/tree.ts';
import { descendantsOf } from '#test/support/service/processes.ts';
import { command, firstReply } from '../cdp-client.ts';
import { createFigures, interleave } from '../harness/interleave.ts';
import { processorTimes, type Probe } from '../harness/probe.ts';
import type { Verdict } from '../samples.ts';
import type { LifecycleOptions } from './bench-lifecycle.ts';

/** A single decision about the service's flags, taken back. */
const VARIANTS = {
  shipped: (flags: string[]) => flags,
  'spare renderer': (flags: string[]) =>
    flags.map((flag) => flag.replace('SpareRendererForSitePerProcess,', '')),
};
type Variant = keyof typeof VARIANTS;

const SITES = ['http://a.test', 'http://b.test', 'http://c.test'] as const;
/** Long enough for a spare renderer to be there, and for the browser to be idle again. */
const IDLE_MS = 1_000;
/** Chromium's sandbox needs a user other than root. */
const NOBODY_UID = 65_534;
const TICK_MS = 10;
const SPEC = { workloadId: 'bench', vncPassword: 'password', screen: { width: 1280, height: 800 } };

const MEASURES = [
  'launch → first CDP reply, ms',
  'at once: first page, ms',
  'at once: another site, ms',
  'at once: launch → the other site has loaded, ms',
  'at once: new page of a third site, ms',
  'at once: processor time of the life, ms',
  'after a second: PSS, MiB',
  'after a second: first page, ms',
  'after a second: another site, ms',
  'after two: new page of a third site, ms',
  'after two: processor time of the life, ms',
] as const;
type Measure = (typeof MEASURES)[number];

/**
 * What single flags cost and gain: lives of browsers with the service's flags and without one of
 * them, in turns. Prints medians; there is no goal.
 */
export async function benchFlags(
  { programs, rounds, print }: LifecycleOptions,
  probe: Probe,
): Promise<Verdict[]> {
  using site = await startSite();
  const user = process.getuid?.() === 0 ? { uid: NOBODY_UID, gid: NOBODY_UID } : undefined;
  const place = { tmp: await prepareFolders(user), user, port: site.port };
  const names = Object.keys(VARIANTS) as Variant[];
  const figures = createFigures<`${Variant}: ${Measure}`>();
  const step = (variant: Variant, live: typeof liveAtOnce) => async (isCounted: boolean) => {
    const before = (await processorTimes()).busy;
    const add = (measure: Measure, value: number) => {
      if (isCounted) figures.add(`${variant}: ${measure}`, value);
    };
    const browser = await launch(programs, place, VARIANTS[variant]);
    await live(browser, add);
    await browser.end();
    const spentMs = ((await processorTimes()).busy - before) * TICK_MS;
    const when = live === liveAtOnce ? 'at once' : 'after two';
    add(`${when}: processor time of the life, ms`, spentMs);
  };
  const steps = names.flatMap((name) => [step(name, liveAtOnce), step(name, liveWaiting)]);
  for (const warmUp of steps) await warmUp(false);
  const counted = steps.map((each) => () => each(true));
  await interleave(counted, rounds, () => probe.take());
  print(`medians of ${rounds} lives`.padEnd(50) + names.map((name) => name.padStart(16)).join(''));
  for (const measure of MEASURES) {
    const cells = names.map((name) => figures.of(`${name}: ${measure}`).p50.toFixed(0));
    print(measure.padEnd(50) + cells.map((cell) => cell.padStart(16)).join(''));
  }
  return [];
}

type Add = (measure: Measure, value: number) => void;
type Launched = { socket: WebSocket; begunAt: number };

/** A cold create: its client begins at the first reply. */
async function liveAtOnce({ socket, begunAt }: Launched, add: Add): Promise<void> {
  add('launch → first CDP reply, ms', performance.now() - begunAt);
  const page = await firstPage(socket);
  add('at once: first page, ms', await navigate(socket, page, SITES[0]));
  add('at once: another site, ms', await navigate(socket, page, SITES[1]));
  add('at once: launch → the other site has loaded, ms', performance.now() - begunAt);
  add('at once: new page of a third site, ms', await openPage(socket, SITES[2]));
}

/** A browser that has waited in the pool. */
async function liveWaiting({ socket }: Launched, add: Add): Promise<void> {
  await sleep(IDLE_MS);
  add('after a second: PSS, MiB', await pssMib());
  const page = await firstPage(socket);
  add('after a second: first page, ms', await navigate(socket, page, SITES[0]));
  add('after a second: another site, ms', await navigate(socket, page, SITES[1]));
  await sleep(IDLE_MS);
  add('after two: new page of a third site, ms', await openPage(socket, SITES[2]));
}

/** Attaches to the page that is there, as drivers do. @returns the id of its CDP session */
async function firstPage(socket: WebSocket): Promise<string> {
  const { targetInfos } = await command(socket, 'Target.getTargets', {});
  const page = (targetInfos as { targetId: string; type: string }[]).find(
    ({ type }) => type === 'page',
  );
  const attach = { targetId: page?.targetId, flatten: true };
  const { sessionId } = await command(socket, 'Target.attachToTarget', attach);
  await command(socket, 'Page.enable', {}, sessionId as string);
  return sessionId as string;
}

/** Milliseconds from the command to the page's load event. */
async function navigate(socket: WebSocket, sessionId: string, url: string): Promise<number> {
  const begunAt = performance.now();
  const loaded = event(socket, 'Page.loadEventFired', sessionId);
  await command(socket, 'Page.navigate', { url }, sessionId);
  await loaded;
  return performance.now() - begunAt;
}

/** Milliseconds from the command to the load event of a new page. */
async function openPage(socket: WebSocket, url: string): Promise<number> {
  const begunAt = performance.now();
  // The new target is paused until its events are read.
  const attach = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };
  const filter = [{ type: 'page' }];
  await command(socket, 'Target.setAutoAttach', { ...attach, filter });
  const attached = event(socket, 'Target.attachedToTarget');
  await command(socket, 'Target.createTarget', { url });
  const { sessionId } = (await attached) as { sessionId: string };
  const loaded = event(socket, 'Page.loadEventFired', sessionId);
  void command(socket, 'Page.enable', {}, sessionId);
  void command(socket, 'Runtime.runIfWaitingForDebugger', {}, sessionId);
  await loaded;
  return performance.now() - begunAt;
}

/** The next event, of a session if it is given. */
function event(socket: WebSocket, method: string, sessionId?: string) {
  const { promise, resolve } = Promise.withResolvers<object>();
  function listen(data: unknown): void {
    const message = JSON.parse((data as Buffer).toString()) as Event;
    if (message.method !== method || message.sessionId !== sessionId) return;
    socket.off('message', listen);
    resolve(message.params ?? {});
  }
  socket.on('message', listen);
  return promise;
}
type Event = { method?: string; sessionId?: string; params?: object };

type Place = { tmp: string; user: { uid: number; gid: number } | undefined; port: number };

/** Starts the browser as the process adapter does, but for the flags that are edited. */
async function launch(
  { chromium: program, xvnc }: LifecycleOptions['programs'],
  { tmp, user, port }: Place,
  edit: (flags: string[]) => string[],
) {
  const folder = mkdtempSync(join(tmp, 'bss-flags-'));
  const number = chooseDisplay();
  writeCookie(folder, user);
  writeKeymap(folder, user);
  writePassword(folder, SPEC.vncPassword, user);
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    LANG: 'C.UTF-8',
    HOME: folder,
    TMPDIR: folder,
    DISPLAY: `:${number}`,
    XAUTHORITY: `${folder}/xauthority`,
  };
  const begunAt = performance.now();
  const display = startDisplay(xvnc, SPEC, { number, folder, env, user });
  await displayListens(display, AbortSignal.timeout(10_000));
  const listening = Promise.withResolvers<string>();
  const args = [
    '--remote-debugging-port=0',
    `--user-data-dir=${folder}/profile`,
    `--host-resolver-rules=MAP *.test:80 127.0.0.1:${port}`,
    ...edit(chromiumFlags(SPEC)),
  ];
  const onLine = (line: string) => {
    const found = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (found !== undefined) listening.resolve(found);
  };
  const child = startChild(program, args, { env, cwd: folder, user, onLine });
  const socket = await firstReply(await listening.promise);
  return {
    socket,
    begunAt,
    async end() {
      socket.terminate();
      const sessions = [display.child, child].map(sessionOf);
      await endProcesses({ folder, sessions, leaderless: true });
      await removeDisplayFiles(number);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function sessionOf({ session, tail }: Child) {
  if (session === null) throw new Error(tail());
  return session;
}

/** Memory of this process's descendants; a shared page counts in parts. */
async function pssMib(): Promise<number> {
  const sizes = await Promise.all(
    descendantsOf(process.pid).map(({ pid }) =>
      readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => ''),
    ),
  );
  const kib = sizes.map((text) => Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0));
  return kib.reduce((sum, size) => sum + size, 0) / 1024;
}

/** A page with a style and a script of its own. */
async function startSite() {
  const page = `<!doctype html><title>Page</title><link rel=stylesheet href=/style.css>
    <script src=/script.js></script>${'<p>Some text of the page.</p>'.repeat(200)}`;
  const server = createServer((request, response) => {
    const type = /\.(css|js)$/.exec(request.url ?? '')?.[1];
    const [mime, body] =
      type === 'css'
        ? ['text/css', 'p { color: #333 }']
        : type === 'js'
          ? ['text/javascript', 'globalThis.loaded = true;']
          : ['text/html', page];
    response.setHeader('content-type', mime).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
