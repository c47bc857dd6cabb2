/** The part of Playwright's Locator that is needed here. */
export type LocatorLike = {
  page(): { context(): { newCDPSession(page: never): Promise<CdpSessionLike> } };
  evaluate(run: (element: never, key: string) => void, key: string): Promise<unknown>;
};
type CdpSessionLike = {
  send(method: never, params: never): Promise<unknown>;
  detach(): Promise<void>;
};
type Send = (method: string, params: object) => Promise<unknown>;

/** Both run in the page, as they are written: they know nothing but their arguments. */
function keep(element: unknown, key: string): void {
  (globalThis as Record<symbol, unknown>)[Symbol.for(key)] = element;
}
function forget(_element: unknown, key: string): void {
  delete (globalThis as Record<symbol, unknown>)[Symbol.for(key)];
}

/**
 * Chooses files that `uploadFile` has put into the session for an `<input type="file">` of the
 * page. Playwright's own `setInputFiles` looks for a path on this machine, and sends at most 50 MB
 * of it. Puppeteer's `uploadFile(path)` needs no such help.
 * @param input a locator of one element, in the page itself and not in a frame of it
 */
export async function setInputFiles(
  input: LocatorLike,
  files: { path: string } | readonly { path: string }[],
): Promise<void> {
  const paths = [files].flat().map(({ path }) => path);
  const page = input.page();
  const key = `browser-session-service:${crypto.randomUUID()}`;
  const cdp = await page.context().newCDPSession(page as never);
  const send = cdp.send.bind(cdp) as unknown as Send;
  try {
    await input.evaluate(keep, key);
    const expression = `globalThis[Symbol.for(${JSON.stringify(key)})]`;
    const { result } = (await send('Runtime.evaluate', { expression })) as {
      result: { objectId?: string };
    };
    const { objectId } = result;
    if (objectId === undefined) throw new TypeError('the input is not in the page itself');
    await send('DOM.setFileInputFiles', { objectId, files: paths });
  } finally {
    await input.evaluate(forget, key).catch(() => undefined);
    await cdp.detach().catch(() => undefined);
  }
}
