import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectPuppeteer, type Page } from 'puppeteer-core';
import { expect } from 'vitest';
import { createWebSocketStream, WebSocket } from 'ws';
import type { BrowserRecord } from '#src/browsers/process/records.ts';
import { colourAt, connectRfb, type RfbClient } from '#test/support/clients/rfb-client.ts';
import { eventually, startService, type RunningService, type Service } from './service.ts';
import { descendantsOf, processesAt, type SeenProcess } from './processes.ts';

/** The whole service with real browsers, whose folders are the only things in `temporary`. */
export type RealService = RunningService & { temporary: string };

/** A session in the answer to its create. */
export type CreatedSession = {
  id: string;
  status: string;
  cdp_url: string;
  vnc_url: string;
  vnc_password: string;
  viewer_url: string;
  expires_at: string;
  autoscaler_workload_id: string;
};

/** Tests poll often and do not test the rate limit. */
const MANY_REQUESTS = JSON.stringify({ max: { requests_per_minute: 1_000_000 } });
/** For what hangs: a page of a busy machine is slow. */
const PAGE_WITHIN_MS = 120_000;

export async function startRealService(env: Record<string, string> = {}): Promise<RealService> {
  await using stack = new AsyncDisposableStack();
  // Short, and open to the browsers' user: sockets are created in it.
  const temporary = await mkdtemp('/tmp/bss-t-');
  stack.defer(() => rm(temporary, { recursive: true, force: true }));
  await chmod(temporary, 0o711);
  const settings = { BROWSERS: 'process', TMPDIR: temporary, TIERS: MANY_REQUESTS, ...env };
  const service = stack.use(await startService(settings));
  const all = stack.move();
  return Object.assign(service, { temporary, [Symbol.asyncDispose]: () => all.disposeAsync() });
}

/** Creates a session once a browser is idle. */
export async function createWarm(service: Service, body: object = {}): Promise<CreatedSession> {
  await eventually(
    async () => ((await poolOf(service))['idle'] ?? 0) > 0,
    'a browser that waits for a session',
  );
  const answer = await service.request('POST', '/api/sessions', body);
  expect([answer.status, answer.body.status]).toEqual([201, 'active']);
  return answer.body as CreatedSession;
}

/** The pool's counters, once the read model is current: until then they are refused. */
export async function poolOf(service: Service): Promise<Record<string, number>> {
  return eventually(async () => {
    const { status, body } = await service.request('GET', '/api/status');
    if (status !== 200 && status !== 503) throw new Error(`${status} ${JSON.stringify(body)}`);
    return status === 200 && (body.autoscaler.pool_status as Record<string, number>);
  }, 'the pool is read');
}

export async function readSession(service: Service, id: string) {
  const { status, body } = await service.request('GET', `/api/sessions/${id}`);
  expect([id, status]).toEqual([id, 200]);
  return body as CreatedSession & {
    ended_at: string | null;
    ended_reason: string | null;
    started_at: string | null;
    last_accessed_at: string | null;
    credits_used: number | null;
  };
}

/** Resolves once the session has that status. */
export async function reaches(service: Service, id: string, status: string, withinMs?: number) {
  return eventually(
    async () => {
      const session = await readSession(service, id);
      return session.status === status && session;
    },
    `session ${id} is ${status}`,
    withinMs,
  );
}

/** Drives the session's first page by Puppeteer, and disconnects. */
export async function onPage<Result>(
  { cdp_url: browserWSEndpoint }: Pick<CreatedSession, 'cdp_url'>,
  use: (page: Page) => Promise<Result>,
): Promise<Result> {
  const browser = await connectPuppeteer({ browserWSEndpoint, defaultViewport: null });
  try {
    const [page] = await browser.pages();
    if (page === undefined) throw new Error('the browser has no page');
    page.setDefaultTimeout(PAGE_WITHIN_MS);
    return await use(page);
  } finally {
    await browser.disconnect();
  }
}

/** A CDP socket after its first reply; `closed` resolves with the close code. */
export async function openCdp(url: string) {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const closed = once(socket, 'close').then(([code]) => code as number);
  await once(socket, 'open');
  socket.on('error', () => {});
  socket.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
  const [reply] = (await once(socket, 'message')) as [Buffer];
  return { socket, closed, reply: JSON.parse(reply.toString()) as { id: number; result: object } };
}

/** A viewer of the session's screen, through the TLS gateway, as any noVNC client. */
export async function openScreen(
  { vnc_url: url }: Pick<CreatedSession, 'vnc_url'>,
  password: string,
): Promise<{ rfb: RfbClient; socket: WebSocket; closed: Promise<number> }> {
  const socket = new WebSocket(url, ['binary'], { rejectUnauthorized: false });
  const closed = once(socket, 'close').then(([code]) => code as number);
  // The screen's first bytes may come together with the answer to the handshake.
  const stream = createWebSocketStream(socket);
  stream.on('error', () => {});
  await once(socket, 'open');
  return { rfb: await connectRfb(stream, password), socket, closed };
}

/** The present colour in the middle of the page on the screen. */
export async function colourOf(rfb: RfbClient): Promise<string> {
  return colourAt(rfb, await rfb.framebuffer(), rfb.width / 2, Math.round(rfb.height * 0.75));
}

/** A page of one colour. */
export function pageOf(colour: string): string {
  return `data:text/html,<body style="background:${colour.replace('#', '%23')}">`;
}

/** All resources of a session's browser on this machine. */
export type BrowserTraces = {
  chromium: number;
  folder: string;
  processes: SeenProcess[];
  /** Its existing files. */
  files(): string[];
};

/** Finds a running session's browser, by the service's own records and /proc. */
export function tracesOf(service: RealService, workloadId: string): BrowserTraces {
  const file = join(service.dataDir, 'browsers', `${workloadId}.json`);
  const record = JSON.parse(readFileSync(file, 'utf8')) as BrowserRecord;
  const [display, chromium] = record.sessions;
  if (display === undefined || chromium === undefined) throw new Error(`half a browser: ${file}`);
  const roots = record.sessions.flatMap(({ pid }) => descendantsOf(pid));
  const named = processesAt(record.folder);
  const processes = [...new Map([...roots, ...named].map((one) => [one.pid, one])).values()];
  // Chromium alone is half a dozen.
  expect(processes.length).toBeGreaterThan(4);
  const paths = [record.folder, file, `/tmp/.X11-unix/X${record.display}`];
  return {
    chromium: chromium.pid,
    folder: record.folder,
    processes,
    files: () => paths.filter((path) => existsSync(path)),
  };
}

/** The remaining files in the service's temporary folder. */
export function temporaryFiles({ temporary }: RealService): Promise<string[]> {
  return readdir(temporary);
}
