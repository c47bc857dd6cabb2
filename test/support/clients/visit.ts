import type { HTTPRequest, HTTPResponse, Page } from 'puppeteer-core';

/** More changes in a row than the tests of Docker networks make while a page is loaded. */
const TRIES_MAX = 20;
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
/** For what hangs: a page of a busy machine is slow. */
const WITHIN_MS = 120_000;

/**
 * Loads a page with all that it requests. Chromium cancels requests when an address of the machine
 * changes, as by another test's network: then the page is loaded again.
 */
export async function visit(page: Page, url: string): Promise<HTTPResponse | null> {
  for (let tries = 1; ; tries += 1) {
    let isCancelled = false;
    const onFailed = (request: HTTPRequest): void => {
      isCancelled ||= request.failure()?.errorText === NETWORK_CHANGED;
    };
    page.on('requestfailed', onFailed);
    const how = { waitUntil: 'networkidle0', timeout: WITHIN_MS } as const;
    const loaded = await page.goto(url, how).catch((error: unknown) => {
      // The page's own request may fail before its event arrives.
      isCancelled ||= String(error).includes(NETWORK_CHANGED);
      if (!isCancelled) throw error;
      return null;
    });
    page.off('requestfailed', onFailed);
    if (!isCancelled) return loaded;
    if (tries === TRIES_MAX) throw new Error(`the network changed in each load of ${url}`);
  }
}
