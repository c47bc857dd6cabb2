import type { Logger } from '#src/telemetry/logger.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '../observer/part.ts';

/** What can be done in one browser about its downloads. */
export type DownloadControls = {
  /** Has the browser cancel a download. */
  cancel: (guid: string) => void;
  /**
   * Writes an error to the console of the page whose main frame this is. A frame of another kind,
   * or of a page that has closed, gets nothing: another page may be another site's.
   */
  tell: (frameId: string | undefined, text: string) => void;
};

/** The observed browsers and pages of a server, for what is done about their downloads. */
export function createDownloadControls(log: Pick<Logger, 'debug'>) {
  const connections = new Map<string, ObservedBrowserConnection>();
  /** By their ids, which are those of their main frames. */
  const pages = new Map<string, ObservedTarget>();

  return {
    /** Keeps the newest connection to each browser for as long as it lasts. */
    attached(browser: ObservedBrowserConnection): void {
      keep(connections, browser.workloadId, browser);
    },
    /** Keeps the page until it is closed. */
    pageAttached(page: ObservedTarget): void {
      keep(pages, page.targetId, page);
    },
    of: (workloadId: string): DownloadControls => ({
      cancel(guid) {
        connections
          .get(workloadId)
          ?.send('Browser.cancelDownload', { guid })
          .catch((error: unknown) => log.debug({ err: error, workloadId }, 'a download went on'));
      },
      tell(frameId, text) {
        const page = pages.get(frameId ?? '');
        if (page?.workloadId !== workloadId) return;
        const expression = `console.error(${JSON.stringify(text)})`;
        // One that waits for a dialog, or has gone, does not get it.
        page
          .send('Runtime.evaluate', { expression, silent: true })
          .catch((error: unknown) => log.debug({ err: error, workloadId }, 'a page was not told'));
      },
    }),
  };
}

/** Keeps the newest of a key until it ends. */
function keep<Kept extends { closed: AbortSignal }>(
  all: Map<string, Kept>,
  key: string,
  kept: Kept,
): void {
  if (kept.closed.aborted) return;
  all.set(key, kept);
  kept.closed.addEventListener('abort', () => {
    if (all.get(key) === kept) all.delete(key);
  });
}
