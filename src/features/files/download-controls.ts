import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '#src/browsers/observer/part.ts';

/**
 * Writes an error to the console of a page, as long as the page shows the same site. Does nothing
 * once it shows another one or is closed, or where the frame is of no page: another site must not
 * learn the name of a file.
 */
export type PageConsole = (text: string) => void;

/** `url` is that of the page's last committed navigation. */
type Page = { target: ObservedTarget; url: string };

/** The observed browsers and pages of a server, for what is done about their downloads. */
export function createDownloadControls(log: Pick<Logger, 'debug'>) {
  const connections = new Map<string, ObservedBrowserConnection>();
  /** By their ids, which are those of their main frames. */
  const pages = new Map<string, Page>();

  return {
    /** Keeps the newest connection to each browser for as long as it lasts. */
    attached(browser: ObservedBrowserConnection): void {
      keep(connections, browser.workloadId, browser, browser.closed);
      browser.on('Target.targetInfoChanged', ({ targetInfo }) => {
        const { targetId, url } = targetInfo as { targetId: string; url: string };
        const page = pages.get(targetId);
        if (page?.target.workloadId === browser.workloadId) page.url = url;
      });
    },
    /** Keeps the page until it is closed. */
    pageAttached(page: ObservedTarget): void {
      keep(pages, page.targetId, { target: page, url: page.url }, page.closed);
    },
    /** Has the browser cancel a download. */
    cancel(workloadId: string, guid: string): void {
      connections
        .get(workloadId)
        ?.send('Browser.cancelDownload', { guid })
        .catch((error: unknown) => log.debug({ err: error, workloadId }, 'a download went on'));
    },
    /** The console of the page whose main frame this is, as of now. */
    consoleOf(workloadId: string, frameId = ''): PageConsole {
      const now = pages.get(frameId);
      if (now?.target.workloadId !== workloadId) return () => undefined;
      const isSameSite = sameSite(now.url);
      return (text) => {
        const expression = `if (${isSameSite}) console.error(${JSON.stringify(text)})`;
        // One that waits for a dialog, or has gone, does not get it.
        pages
          .get(frameId)
          ?.target.send('Runtime.evaluate', { expression, silent: true })
          .catch((error: unknown) => log.debug({ err: error, workloadId }, 'a page was not told'));
      };
    },
  };
}

/**
 * An expression that is true in a page of the same site as the address: a page cannot replace its
 * `location`. A site without an origin, as `data:`, is the same only at the same address.
 */
function sameSite(url: string): string {
  const origin = URL.parse(url)?.origin ?? 'null';
  return origin === 'null'
    ? `location.href === ${JSON.stringify(url)}`
    : `location.origin === ${JSON.stringify(origin)}`;
}

/** Keeps the newest of a key until it ends. */
function keep<Kept>(all: Map<string, Kept>, key: string, kept: Kept, closed: AbortSignal): void {
  if (closed.aborted) return;
  all.set(key, kept);
  closed.addEventListener('abort', () => {
    if (all.get(key) === kept) all.delete(key);
  });
}
