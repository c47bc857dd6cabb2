import { DOWNLOADS_FOLDER } from '#src/browsers/link/downloads-folder.ts';
import type { ObservedBrowserConnection } from '#src/browsers/observer/part.ts';
import type { DownloadBegin, DownloadProgress } from './downloads.ts';

/** Contexts of one browser whose downloads are kept; a client makes some. */
const CONTEXTS_MAX = 256;

export type DownloadListener = {
  begin(told: DownloadBegin): void;
  progress(told: DownloadProgress): void;
};

/**
 * Has the downloads of a browser land in its folder, of each context as it appears, and passes on
 * what the browser tells of them.
 */
export async function observeDownloads(
  browser: ObservedBrowserConnection,
  listener: DownloadListener,
): Promise<void> {
  const behavior = {
    behavior: 'allowAndName',
    downloadPath: DOWNLOADS_FOLDER,
    eventsEnabled: true,
  };
  const contexts = new Set<string>();
  browser.on('Target.targetCreated', ({ targetInfo }) => {
    const { browserContextId } = targetInfo as { browserContextId?: string };
    if (browserContextId === undefined || contexts.has(browserContextId)) return;
    if (contexts.size >= CONTEXTS_MAX) return;
    contexts.add(browserContextId);
    // The default context has been told already, and may not be known by an id.
    const told = browser.send('Browser.setDownloadBehavior', { ...behavior, browserContextId });
    void told.catch(() => undefined);
  });
  browser.on('Browser.downloadWillBegin', (told) => listener.begin(told as DownloadBegin));
  browser.on('Browser.downloadProgress', (told) => listener.progress(told as DownloadProgress));
  await browser.send('Browser.setDownloadBehavior', behavior);
  await browser.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
}
