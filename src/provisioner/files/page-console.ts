import type { ObservedTarget } from '../observer/part.ts';

/** Pages that get a line whose own page is not known. */
const PAGES_MAX = 8;

/** The open pages of browsers, and what is written to their consoles. */
export function createPageConsoles() {
  const pages = new Map<string, Set<ObservedTarget>>();
  return {
    /** Keeps the page until it is closed. */
    attached(page: ObservedTarget): void {
      const { workloadId, closed } = page;
      if (closed.aborted) return;
      const ofBrowser = pages.get(workloadId) ?? new Set();
      pages.set(workloadId, ofBrowser.add(page));
      closed.addEventListener('abort', () => {
        ofBrowser.delete(page);
        if (ofBrowser.size === 0 && pages.get(workloadId) === ofBrowser) pages.delete(workloadId);
      });
    },
    /**
     * Writes an error to the console of the page that a frame is of. A page's main frame has the
     * page's id; the page of another frame, or of one that has closed, is not known, so every page
     * gets the line. Never rejects: a page that waits for a dialog, or has gone, gets none.
     */
    async error(workloadId: string, frameId: string | undefined, text: string): Promise<void> {
      const open = [...(pages.get(workloadId) ?? [])];
      const asked = open.filter(({ targetId }) => targetId === frameId);
      const expression = `console.error(${JSON.stringify(text)})`;
      await Promise.allSettled(
        (asked.length > 0 ? asked : open.slice(0, PAGES_MAX)).map((page) =>
          page.send('Runtime.evaluate', { expression, silent: true }),
        ),
      );
    },
  };
}
