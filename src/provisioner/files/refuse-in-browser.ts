import type { Logger } from '#src/telemetry/logger.ts';
import type { ObservedBrowserConnection, ObservedTarget } from '../observer/part.ts';
import type { DownloadHooks } from './downloads.ts';

/** Pages that get a line whose own page is not known. */
const PAGES_MAX = 8;

/** The open browsers and their pages, as far as refused downloads concern them. */
export function createRefusals(log: Pick<Logger, 'debug'>) {
  const connections = new Map<string, ObservedBrowserConnection>();
  const pages = new Map<string, Set<ObservedTarget>>();

  /**
   * Writes an error to the console of the page that a frame is of. A page's main frame has the
   * page's id; the page of another frame, or of one that has closed, is not known, so every page
   * gets the line. Never rejects: a page that waits for a dialog, or has gone, gets none.
   */
  async function toConsole(workloadId: string, frameId: string | undefined, text: string) {
    const open = [...(pages.get(workloadId) ?? [])];
    const asked = open.filter(({ targetId }) => targetId === frameId);
    const expression = `console.error(${JSON.stringify(text)})`;
    await Promise.allSettled(
      (asked.length > 0 ? asked : open.slice(0, PAGES_MAX)).map((page) =>
        page.send('Runtime.evaluate', { expression, silent: true }),
      ),
    );
  }

  return {
    /** Keeps the newest connection to each browser for as long as it lasts. */
    attached(browser: ObservedBrowserConnection): void {
      const { workloadId, closed } = browser;
      connections.set(workloadId, browser);
      closed.addEventListener('abort', () => {
        if (connections.get(workloadId) === browser) connections.delete(workloadId);
      });
    },
    /** Keeps the page until it is closed. */
    pageAttached(page: ObservedTarget): void {
      const { workloadId, closed } = page;
      if (closed.aborted) return;
      const ofBrowser = pages.get(workloadId) ?? new Set();
      pages.set(workloadId, ofBrowser.add(page));
      closed.addEventListener('abort', () => {
        ofBrowser.delete(page);
        if (ofBrowser.size === 0 && pages.get(workloadId) === ofBrowser) pages.delete(workloadId);
      });
    },
    /** What is done in one browser for a refused download. */
    in: (workloadId: string): DownloadHooks => ({
      cancel(guid) {
        connections
          .get(workloadId)
          ?.send('Browser.cancelDownload', { guid })
          .catch((error: unknown) => log.debug({ err: error, workloadId }, 'a download went on'));
      },
      tell: (frameId, text) => void toConsole(workloadId, frameId, text),
    }),
  };
}
