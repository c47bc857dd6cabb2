import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import { filesMax } from '#events/session/files.ts';
import type { SessionEvent } from '#events/session.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import type { SessionFile } from '#src/kernel/domain/session/files.ts';
import { reject } from '#src/kernel/errors.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { createSimulatedFolders } from '#src/browsers/simulated/folders.ts';
import {
  SessionFileStore,
  type FileStoreDependencies,
} from '#src/features/files/session-file-store.ts';
import { createSessionFiles } from '#src/features/files/session-files.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '#src/browsers/observer/part.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, requested } from '#test/support/examples.ts';

/** What becomes of what a browser downloads, without a browser. */

const FILE_BYTES_MAX = 1_000;
const SESSION_BYTES_MAX = 2_500;
const workloadId = 'wl_1';
const identity = { organizationId: 'acme', id: 'ses_1' };

let events: SessionEvent[];
let sent: { method: string; params: Record<string, unknown> }[];
let folders: ReturnType<typeof createSimulatedFolders>;
let objects: ReturnType<typeof createMemoryObjectStore>;
let files: ReturnType<typeof createSessionFiles>;
let tell: (event: string, params: Record<string, unknown>) => void;
/** What becomes of a recorded event: it is stored, is refused, or its outcome is unknown. */
let recording: 'stored' | 'refused' | 'answer lost';

beforeEach(async () => {
  recording = 'stored';
  events = [];
  sent = [];
  folders = createSimulatedFolders();
  folders.open(workloadId);
  objects = createMemoryObjectStore();
  const session = foldAll<'session'>(sessionRef, null, [requested(), activated()]);
  const limits = { fileBytesMax: FILE_BYTES_MAX, sessionBytesMax: SESSION_BYTES_MAX };
  const log = pino({ level: 'silent' });
  const eventStore = { async *history() {} };
  const common = { folders, objects, limits, log, now: () => Date.parse('2026-11-20T09:00:00Z') };
  files = createSessionFiles({ ...common, eventStore, endWithinMs: 20 });
  const reporter = {
    async session(_: unknown, command: SessionCommand) {
      if (recording === 'refused') return reject('SESSION_ENDED', {});
      events.push(...(decide(command, session) as SessionEvent[]));
      if (recording === 'answer lost') throw new Error('the event store does not answer');
      return { state: session, sequence: 1 };
    },
  };
  const served = { workloadId, phase: 'busy' as const, session: identity, browser: null };
  files.start({ get: () => served }, reporter as unknown as Reporter);
  await connect();
});

/** Connects to the browser, which then tells over this connection. @returns what ends it */
async function connect(): Promise<() => void> {
  const listeners = new Map<string, (params: Record<string, unknown>) => void>();
  const closed = new AbortController();
  tell = (event, params) => listeners.get(event)?.(params);
  const connection = {
    workloadId,
    async send(method: string, params: Record<string, unknown>) {
      sent.push({ method, params });
    },
    on: (event: string, listener: (params: Record<string, unknown>) => void) =>
      void listeners.set(event, listener),
    closed: closed.signal,
  } as unknown as ObservedBrowserConnection;
  await files.part.attached?.(connection);
  return () => closed.abort();
}

/** Opens a page of a browser. @returns what is written to its console, and what closes it */
function openPage(targetId: string, of = workloadId, url = 'https://shop.example/cart') {
  const written: string[] = [];
  const closed = new AbortController();
  let location = new URL(url);
  const page = {
    ...{ workloadId: of, targetId, url, closed: closed.signal },
    async send(method: string, { expression }: { expression: string }) {
      if (method !== 'Runtime.evaluate') return;
      const error = (text: string) => written.push(text);
      runInNewContext(expression, { location, console: { error } });
    },
  };
  void files.part.pages?.attached(page as unknown as ObservedTarget);
  return {
    written,
    close: () => closed.abort(),
    navigate(to: string) {
      location = new URL(to);
      tell('Target.targetInfoChanged', { targetInfo: { targetId, url: to } });
    },
  };
}

const begin = (guid: string, suggestedFilename: string, frameId = 'frame') =>
  tell('Browser.downloadWillBegin', { guid, url: 'https://a', suggestedFilename, frameId });
const progress = (guid: string, state: string, receivedBytes = 0, totalBytes = 0) =>
  tell('Browser.downloadProgress', { guid, state, receivedBytes, totalBytes });
function download(guid: string, name: string, content: string): void {
  begin(guid, name);
  folders.put(workloadId, guid, Buffer.from(content));
  progress(guid, 'completed', content.length, content.length);
}
const told = () =>
  events.map(({ type, data }) => {
    const { name, reason = '' } = data as { name: string; reason?: string };
    return `${type.slice('session.file-'.length)} ${name} ${reason}`.trim();
  });
const settled = () => files.end(workloadId);
const cancelled = () =>
  sent
    .filter(({ method }) => method === 'Browser.cancelDownload')
    .map(({ params }) => params['guid']);

describe('what a browser downloads', () => {
  it('lands in the folder whatever context it is in', () => {
    tell('Target.targetCreated', { targetInfo: { type: 'page', browserContextId: 'ctx' } });
    tell('Target.targetCreated', { targetInfo: { type: 'page', browserContextId: 'ctx' } });
    const behaviors = sent.filter(({ method }) => method === 'Browser.setDownloadBehavior');
    expect(behaviors.map(({ params }) => params['browserContextId'])).toEqual([undefined, 'ctx']);
    for (const { params } of behaviors)
      expect(params).toMatchObject({ behavior: 'allowAndName', eventsEnabled: true });
  });

  it('is stored and recorded under a safe name; names that are taken are numbered', async () => {
    download('g1', '../../report.pdf', 'one');
    download('g2', 'report.pdf', 'two');
    await settled();
    expect(told()).toEqual(['added report.pdf', 'added report (1).pdf']);
    const [first] = await Array.fromAsync(objects.list('files/acme/ses_1/'));
    expect(first?.bytes).toBe(3);
  });

  it('keeps its content where it is not known whether it was recorded', async () => {
    recording = 'answer lost';
    download('g1', 'report.pdf', 'one');
    await settled();
    expect(told()[0]).toBe('added report.pdf');
    expect(await Array.fromAsync(objects.list('files/acme/ses_1/'))).toHaveLength(1);
  });

  it('leaves no content where the session does not take it any more', async () => {
    recording = 'refused';
    download('g1', 'report.pdf', 'one');
    await settled();
    expect(await Array.fromAsync(objects.list('files/acme/ses_1/'))).toEqual([]);
  });

  it('is cancelled as soon as it is too large', async () => {
    begin('g1', 'film.mkv');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    progress('g1', 'inProgress', 20, FILE_BYTES_MAX + 1);
    progress('g1', 'canceled', 20, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(told()).toEqual(['refused film.mkv too_large']);
  });

  it('is cancelled over the newer connection to its browser when an older one ends', async () => {
    const endOlder = await connect();
    await connect();
    endOlder();
    begin('g1', 'film.mkv');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
  });

  it('is refused with the reason in the console of the page that began it', async () => {
    const [mine, other] = [openPage('mine'), openPage('other')];
    begin('g1', 'film.mkv', 'mine');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    progress('g1', 'canceled', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect([mine.written, other.written]).toEqual([
      [
        'The download of "film.mkv" was refused. ' +
          'FILE_TOO_LARGE: a file of this session may have 1,000 bytes.',
      ],
      [],
    ]);
  });

  it('is refused without a word to another page, where a frame began it that is no page', async () => {
    const other = openPage('other');
    for (const guid of ['g1', 'g2', 'g3']) {
      begin(guid, guid, 'frame');
      progress(guid, 'inProgress', 900, 0);
    }
    await settled();
    expect(cancelled()).toEqual(['g3']);
    expect(other.written).toEqual([]);
  });

  it('is refused without a word to the page of another browser, whatever frame began it', async () => {
    const anothers = openPage('page', 'wl_2');
    begin('g1', 'film.mkv', 'page');
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(anothers.written).toEqual([]);
  });

  it('is refused without a word to its page, where that has closed', async () => {
    const mine = openPage('mine');
    begin('g1', 'film.mkv', 'mine');
    mine.close();
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(cancelled()).toEqual(['g1']);
    expect(mine.written).toEqual([]);
  });

  it.each([
    ['a page', 'https://shop.example/cart', 'https://other.example/'],
    ['a page without an origin', 'data:text/html,cart', 'data:text/html,other'],
  ])('is refused without a word to the site that %s shows by then', async (_, from, to) => {
    const mine = openPage('mine', workloadId, from);
    begin('g1', 'film.mkv', 'mine');
    mine.navigate(to);
    progress('g1', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect([cancelled(), mine.written]).toEqual([['g1'], []]);
    mine.navigate(from);
    begin('g2', 'film.mkv', 'mine');
    progress('g2', 'inProgress', 10, FILE_BYTES_MAX + 1);
    await settled();
    expect(mine.written).toHaveLength(1);
  });

  it('is refused with the reason in its page, also where it is larger than Chromium told', async () => {
    const mine = openPage('mine');
    begin('g1', 'a', 'mine');
    folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(mine.written).toEqual([expect.stringContaining('FILE_TOO_LARGE')]);
  });

  it('is refused with a bounded number of lines in consoles', async () => {
    const mine = openPage('mine');
    for (let at = 0; at < 150; at += 1) {
      begin(`g${at}`, 'film.mkv', 'mine');
      progress(`g${at}`, 'inProgress', 10, FILE_BYTES_MAX + 1);
      progress(`g${at}`, 'canceled', 10, FILE_BYTES_MAX + 1);
    }
    await settled();
    expect(mine.written).toHaveLength(100);
  });

  it('is cancelled where all that is on its way is more than the session may have', async () => {
    for (const guid of ['g1', 'g2', 'g3']) {
      begin(guid, guid);
      progress(guid, 'inProgress', 900, 0);
    }
    await Promise.resolve();
    progress('g3', 'canceled', 900, 0);
    await settled();
    expect(told()[0]).toEqual('refused g3 quota');
  });

  it('is refused where it is larger than Chromium told', async () => {
    begin('g1', 'a');
    folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(told()).toEqual(['refused a too_large']);
    const signal = AbortSignal.timeout(1_000);
    expect(await folders.read(workloadId, 'a', signal)).toBeNull();
  });

  it('is let go before it is removed: a Docker engine removes none that is being read', async () => {
    const steps: string[] = [];
    const { read, remove } = folders;
    folders.read = async (...of) => {
      const file = await read(...of);
      return file && { ...file, [Symbol.asyncDispose]: async () => void steps.push('let go') };
    };
    folders.remove = async (...of) => {
      steps.push('removed');
      await remove(...of);
    };
    begin('g1', 'a');
    folders.put(workloadId, 'g1', Buffer.alloc(FILE_BYTES_MAX + 1));
    progress('g1', 'completed', 0, 0);
    await settled();
    expect(steps.slice(0, 2)).toEqual(['let go', 'removed']);
  });

  it('is recorded as failed where it is cancelled, or not whole at the end', async () => {
    begin('g1', 'cancelled');
    progress('g1', 'canceled');
    begin('g2', 'unfinished');
    progress('g2', 'inProgress', 5, 10);
    await settled();
    expect(told()).toEqual(['refused cancelled failed', 'refused unfinished failed']);
  });

  it('never is out of the folder, whatever the browser tells', async () => {
    begin('../../etc/passwd', 'a');
    progress('../../etc/passwd', 'completed');
    await settled();
    expect(told()).toEqual(['refused a failed']);
  });

  it('leaves a bounded number of events', async () => {
    for (let at = 0; at < 150; at += 1) {
      begin(`g${at}`, 'a');
      progress(`g${at}`, 'canceled');
    }
    await settled();
    expect(events).toHaveLength(100);
  });
});

it('a session takes as many files and bytes as it may have, and another content of one that it has', () => {
  const store = (names: readonly string[], bytes: number) => {
    const known = names.map((name) => [name, { name, bytes } as SessionFile] as const);
    const limits = { fileBytesMax: FILE_BYTES_MAX, sessionBytesMax: SESSION_BYTES_MAX };
    const parts = { limits } as FileStoreDependencies;
    return new SessionFileStore(parts, workloadId, identity, new Map(known));
  };
  const many = Array.from({ length: filesMax }, (_, at) => `file-${at}`);
  const tooMany = { reason: 'quota', max: filesMax, of: 'files' };
  expect(store(many.slice(1), 0).excess('file-0', 1)).toBeNull();
  expect(store(many, 0).excess('other', 1)).toEqual(tooMany);
  expect(store(many, 0).excess('file-0', 1)).toBeNull();
  const full = store(['a', 'b'], SESSION_BYTES_MAX / 2 - 50);
  expect(full.excess('other', 100)).toBeNull();
  expect(full.excess('other', 101)).toEqual({ ...tooMany, max: SESSION_BYTES_MAX, of: 'bytes' });
  expect(full.excess('a', FILE_BYTES_MAX)).toBeNull();
});

it('a session that ends waits for its files no longer than it may', async () => {
  const never = new Promise<never>(() => undefined);
  objects.put = (_key, _body, { signal } = {}) =>
    Promise.race([
      never,
      new Promise<never>((_, fail) =>
        signal?.addEventListener('abort', () => fail(signal.reason as Error)),
      ),
    ]);
  download('g1', 'slow', 'content');
  await settled();
  expect(told()).toEqual(['refused slow failed']);
});
