/** The part of Playwright's browser type (`chromium`) that attaches to a running browser. */
export type PlaywrightLike<Browser> = { connectOverCDP(address: string): Promise<Browser> };
/** The part of Puppeteer that attaches to a running browser. */
export type PuppeteerLike<Browser> = {
  connect(options: { browserWSEndpoint: string; defaultViewport: null }): Promise<Browser>;
};

/**
 * Attaches Playwright (`connect(chromium, session)`) or Puppeteer (`connect(puppeteer, session)`)
 * to an active session's browser. Closing the connection leaves the browser running; the session
 * ends when it is stopped. The caller provides the library.
 * @throws TypeError if the session has no address: it has ended, or the API key is a viewer's
 */
export function connect<Browser>(
  library: PlaywrightLike<Browser> | PuppeteerLike<Browser>,
  session: { cdp_url: string | null },
): Promise<Browser> {
  const { cdp_url: address } = session;
  if (address === null) throw new TypeError('the session has no address to connect to');
  if ('connectOverCDP' in library) return library.connectOverCDP(address);
  return library.connect({ browserWSEndpoint: address, defaultViewport: null });
}
