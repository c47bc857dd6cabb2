import { doubling } from '#src/kernel/async/retry.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { openCdp } from '../chromium/cdp.ts';
import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import { observe } from './connection.ts';
import type { ObservedBrowserConnection, ObserverPart } from './part.ts';

/** The provisioner's CDP connections to the browsers that run, one each. */
export type Observer = {
  /**
   * Connects to a browser, and again if the connection is lost, until `detach`. Resolves once the
   * parts are in place, or are late. Never rejects: what cannot be observed is served all the same.
   * @param launchedWith absent: the browser was adopted without a session
   */
  attach(browser: RunningBrowser, launchedWith?: BrowserSpec): Promise<void>;
  /** Ignores a browser that is not attached. */
  detach(workloadId: string): void;
  /** The open connection to a browser; null: there is none now. */
  connection(workloadId: string): ObservedBrowserConnection | null;
} & Disposable;

export type ObserverOptions = {
  parts: readonly ObserverPart[];
  log: Pick<Logger, 'debug' | 'warn'>;
  /** The bound of `attach`; 1 s by default. */
  attachWithinMs?: number;
  /** Pauses before the attempts to connect again. */
  pauseMs?: (attempts: number) => number;
};

const ATTACH_WITHIN_MS = 1_000;
/** A browser whose socket opens later than this is hung. */
const OPEN_WITHIN_MS = 5_000;
/** A larger message is not read: a page chooses how much it writes to its console. */
const READ_BYTES_MAX = 256 * 1024;
/** Connections in a row that were lost soon; then the browser is left unobserved. */
const LOST_SOON_MAX = 6;
const SOON_MS = 60_000;

type Entry = {
  browser: RunningBrowser;
  launchedWith: BrowserSpec | null;
  stop: AbortController;
  inPlace: PromiseWithResolvers<void>;
  current: ObservedBrowserConnection | null;
};

/** Without parts it connects to no browser. */
export function createObserver(options: ObserverOptions): Observer {
  const { parts, log, attachWithinMs = ATTACH_WITHIN_MS } = options;
  const { pauseMs = doubling(250, 30_000) } = options;
  const entries = new Map<string, Entry>();

  /** One connection, until it ends. @throws Error if it cannot be opened, or once it has ended */
  async function connect(entry: Entry): Promise<void> {
    const { browser, launchedWith, stop, inPlace } = entry;
    const { workloadId, cdp: address } = browser;
    const end = new AbortController();
    const signal = AbortSignal.any([stop.signal, end.signal]);
    const late = setTimeout(() => end.abort(new Error('no CDP socket in time')), OPEN_WITHIN_MS);
    const opening = openCdp(address, signal, { readBytesMax: READ_BYTES_MAX });
    using cdp = await opening.finally(() => clearTimeout(late));
    const { connection, ready } = observe(cdp, { workloadId, launchedWith, parts, log });
    entry.current = connection;
    void ready.then(inPlace.resolve);
    await cdp.closed.finally(() => (entry.current = null));
  }

  async function keepConnected(entry: Entry): Promise<void> {
    const { workloadId } = entry.browser;
    const { signal } = entry.stop;
    let lostSoon = 0;
    while (lostSoon < LOST_SOON_MAX) {
      const begunAt = performance.now();
      await connect(entry).catch((error: unknown) => {
        if (!signal.aborted) log.debug({ err: error, workloadId }, 'a browser is not observed');
      });
      lostSoon = performance.now() - begunAt > SOON_MS ? 0 : lostSoon + 1;
      await sleep(pauseMs(Math.max(1, lostSoon)), signal, { ref: false });
      if (signal.aborted) return;
    }
    entry.inPlace.resolve();
    entries.delete(workloadId);
    log.warn({ workloadId }, 'a browser is left unobserved: its connections were lost');
  }

  function detach(workloadId: string): void {
    const entry = entries.get(workloadId);
    entry?.stop.abort(new Error('the browser is ended'));
    entry?.inPlace.resolve();
    entries.delete(workloadId);
  }

  return {
    async attach(browser, launchedWith) {
      const { workloadId } = browser;
      if (parts.length === 0 || entries.has(workloadId)) return;
      const entry: Entry = {
        browser,
        launchedWith: launchedWith ?? null,
        current: null,
        stop: new AbortController(),
        inPlace: Promise.withResolvers<void>(),
      };
      entries.set(workloadId, entry);
      void keepConnected(entry);
      const awaited = parts.map(({ awaitedMs }) => awaitedMs?.(entry.launchedWith) ?? 0);
      await within(Math.max(attachWithinMs, ...awaited), entry.inPlace.promise, () =>
        log.warn({ workloadId }, 'a browser is served before all parts are in place'),
      );
    },
    detach,
    connection: (workloadId) => entries.get(workloadId)?.current ?? null,
    [Symbol.dispose]() {
      for (const workloadId of entries.keys()) detach(workloadId);
    },
  };
}
