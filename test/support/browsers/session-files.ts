import { runInNewContext } from 'node:vm';
import { beforeEach } from 'vitest';
import { pino } from 'pino';
import type { SessionEvent } from '#events/session.ts';
import type { SessionCommand } from '#src/kernel/domain/session/commands.ts';
import { decide } from '#src/kernel/domain/session/decide.ts';
import { reject, Unavailable } from '#src/kernel/errors.ts';
import { createMemoryObjectStore } from '#src/kernel/objects/object-store.memory.ts';
import { createSimulatedFolders } from '#src/browsers/simulated/folders.ts';
import { createSessionFiles } from '#src/features/files/session-files.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '#src/browsers/observer/part.ts';
import type { Reporter } from '#src/commands/reporter.ts';
import { foldAll, sessionRef } from '#test/support/given-when-then.ts';
import { activated, requested } from '#test/support/examples.ts';

export const FILE_BYTES_MAX = 1_000;
export const SESSION_BYTES_MAX = 2_500;
export const workloadId = 'wl_1';
export const identity = { organizationId: 'acme', id: 'ses_1' };

type Params = Record<string, unknown>;

/** The files of a session whose browser is played by the test: a new one for each test. */
export function useSessionFiles() {
  const site = {
    /** What was recorded of the session. */
    events: [] as SessionEvent[],
    /** What the browser was sent. */
    sent: [] as { method: string; params: Params }[],
    folders: createSimulatedFolders(),
    objects: createMemoryObjectStore(),
    files: null as unknown as ReturnType<typeof createSessionFiles>,
    /** What becomes of a recorded event: it is stored, is refused, or its outcome is unknown. */
    recording: 'stored' as 'stored' | 'refused' | 'answer lost',
    /** Whether the session's events cannot be read. */
    isAway: false,
    connect,
    openPage,
    tell: (event: string, params: Params) => tell(event, params),
    begin,
    progress,
    download,
    told,
    cancelled,
    settled: () => site.files.end(workloadId),
  };
  let tell: (event: string, params: Params) => void;

  beforeEach(async () => {
    const folders = createSimulatedFolders();
    const objects = createMemoryObjectStore();
    folders.open(workloadId);
    const eventStore = {
      async *history() {
        if (site.isAway) throw new Unavailable('event-log');
        yield* [];
      },
    };
    const files = createSessionFiles({
      ...{ eventStore, folders, objects, log: pino({ level: 'silent' }) },
      limits: { fileBytesMax: FILE_BYTES_MAX, sessionBytesMax: SESSION_BYTES_MAX },
      now: () => Date.parse('2026-11-20T09:00:00Z'),
    });
    const fresh = { events: [], sent: [], recording: 'stored', isAway: false };
    Object.assign(site, { ...fresh, folders, objects, files });
    const session = foldAll<'session'>(sessionRef, null, [requested(), activated()]);
    const reporter = {
      async session(_: unknown, command: SessionCommand) {
        if (site.recording === 'refused') return reject('SESSION_ENDED', {});
        site.events.push(...(decide(command, session) as SessionEvent[]));
        if (site.recording === 'answer lost') throw new Error('the event store does not answer');
        return { state: session, sequence: 1 };
      },
    };
    const served = { workloadId, phase: 'busy' as const, session: identity, browser: null };
    files.start({ get: () => served }, reporter as unknown as Reporter);
    await connect();
  });

  /** Connects to the browser, which then tells over this connection. @returns what ends it */
  async function connect(): Promise<() => void> {
    const listeners = new Map<string, (params: Params) => void>();
    const closed = new AbortController();
    tell = (event, params) => listeners.get(event)?.(params);
    const connection = {
      workloadId,
      async send(method: string, params: Params) {
        site.sent.push({ method, params });
      },
      on: (event: string, listener: (params: Params) => void) =>
        void listeners.set(event, listener),
      closed: closed.signal,
    } as unknown as ObservedBrowserConnection;
    await site.files.part.attached?.(connection);
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
    void site.files.part.pages?.attached(page as unknown as ObservedTarget);
    return {
      written,
      close: () => closed.abort(),
      navigate(to: string) {
        location = new URL(to);
        tell('Target.targetInfoChanged', { targetInfo: { targetId, url: to } });
      },
    };
  }

  function begin(guid: string, suggestedFilename: string, frameId = 'frame'): void {
    tell('Browser.downloadWillBegin', { guid, url: 'https://a', suggestedFilename, frameId });
  }
  function progress(guid: string, state: string, receivedBytes = 0, totalBytes = 0): void {
    tell('Browser.downloadProgress', { guid, state, receivedBytes, totalBytes });
  }
  function download(guid: string, name: string, content: string): void {
    begin(guid, name);
    site.folders.put(workloadId, guid, Buffer.from(content));
    progress(guid, 'completed', content.length, content.length);
  }
  function told(): string[] {
    return site.events.map(({ type, data }) => {
      const { name, reason = '' } = data as { name: string; reason?: string };
      return `${type.slice('session.file-'.length)} ${name} ${reason}`.trim();
    });
  }
  function cancelled(): unknown[] {
    const cancels = site.sent.filter(({ method }) => method === 'Browser.cancelDownload');
    return cancels.map(({ params }) => params['guid']);
  }
  return site;
}
