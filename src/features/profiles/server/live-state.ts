import { within } from '#src/kernel/async/timeout.ts';
import type { Cdp } from '#src/browsers/link/cdp.ts';
import type { LiveState, LocalStorage } from '#src/features/profiles/packed.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { openCdp } from '#src/browsers/chromium/cdp.ts';

/**
 * What a running browser has not written into its profile's folder yet: cookies, and the local
 * storage of the pages that are open, which Chromium writes seconds to a minute later.
 */

/** For all of it; a page that does not answer takes a part of it. */
const READ_MS = 10_000;
const PAGE_MS = 1_000;
/** Origins whose local storage is read. */
const ORIGINS_MAX = 20;
/** Of all of them, in characters. */
const LOCAL_STORAGE_MAX = 4 * 1024 ** 2;
/** Each is set by a command of its own when it is restored. */
const ITEMS_MAX = 10_000;
const RESTORE_MS = 10_000;

type Address = Pick<RunningBrowser, 'cdp'>;

/** @throws Error if the browser does not answer in time; a page that does not is left out */
export async function readLiveState({ cdp }: Address): Promise<LiveState> {
  using connection = await openCdp(cdp, AbortSignal.timeout(READ_MS));
  const { cookies } = await connection.send<Pick<LiveState, 'cookies'>>('Storage.getCookies');
  const localStorage: LocalStorage[] = [];
  let left = LOCAL_STORAGE_MAX;
  let itemsLeft = ITEMS_MAX;
  for (const [origin, targetId] of await openOrigins(connection)) {
    const reading = readLocalStorage(connection, targetId, origin).catch(() => null);
    const items = await within(PAGE_MS, reading, () => null);
    left -= items?.join('').length ?? 0;
    itemsLeft -= items?.length ?? 0;
    if (items !== null && left >= 0 && itemsLeft >= 0) localStorage.push({ origin, items });
  }
  // A cookie without an expiry has -1, which cannot be set.
  const settable = cookies.map(({ expires, ...cookie }) =>
    cookie['session'] === true ? cookie : { ...cookie, expires },
  );
  return { cookies: settable, localStorage };
}

/** The sites that are open, each with a page of it. */
async function openOrigins(connection: Cdp): Promise<Map<string, string>> {
  const pages = { filter: [{ type: 'page', exclude: false }] };
  const { targetInfos } = await connection.send<{
    targetInfos: { targetId: string; url: string }[];
  }>('Target.getTargets', pages);
  const web = targetInfos.flatMap(({ targetId, url }): [string, string][] => {
    const parsed = URL.parse(url);
    return parsed !== null && /^https?:$/.test(parsed.protocol) ? [[parsed.origin, targetId]] : [];
  });
  return new Map([...new Map(web)].slice(0, ORIGINS_MAX));
}

async function readLocalStorage(
  connection: Cdp,
  targetId: string,
  origin: string,
): Promise<LocalStorage['items']> {
  const sessionId = await attach(connection, targetId);
  const asked = { storageId: storageOf(origin) };
  const { entries } = await connection.send<{ entries: LocalStorage['items'] }>(
    'DOMStorage.getDOMStorageItems',
    asked,
    sessionId,
  );
  await connection.send('Target.detachFromTarget', { sessionId });
  return entries;
}

/** Puts it into an unused browser. @throws Error if that does not answer in time */
export async function restoreLiveState(
  { cdp }: Address,
  { cookies, localStorage }: LiveState,
): Promise<void> {
  using connection = await openCdp(cdp, AbortSignal.timeout(RESTORE_MS));
  await connection.send('Storage.clearCookies');
  await connection.send('Storage.setCookies', { cookies });
  for (const one of localStorage) await restoreLocalStorage(connection, one);
}

/** By an empty page of the origin, in the background: no server is asked. */
async function restoreLocalStorage(
  connection: Cdp,
  { origin, items }: LocalStorage,
): Promise<void> {
  const blank = { url: 'about:blank', background: true };
  const { targetId } = await connection.send<{ targetId: string }>('Target.createTarget', blank);
  const sessionId = await attach(connection, targetId);
  const send = (method: string, params?: object) => connection.send(method, params, sessionId);
  const loaded = Promise.withResolvers<void>();
  connection.onEvent(({ method, params }) => {
    if (method === 'Page.loadEventFired') loaded.resolve();
    if (method !== 'Fetch.requestPaused') return;
    const answer = { requestId: params['requestId'], responseCode: 200, body: '' };
    send('Fetch.fulfillRequest', answer).catch(loaded.reject);
  });
  // A worker of the site would answer in place of the empty page.
  await send('Network.enable');
  await send('Network.setBypassServiceWorker', { bypass: true });
  await send('Fetch.enable');
  await send('Page.enable');
  await send('Page.navigate', { url: `${origin}/` });
  await Promise.race([loaded.promise, connection.closed]);
  const storageId = storageOf(origin);
  await send('DOMStorage.clear', { storageId });
  for (const [key, value] of items)
    await send('DOMStorage.setDOMStorageItem', { storageId, key, value });
  await connection.send('Target.closeTarget', { targetId });
}

async function attach(connection: Cdp, targetId: string): Promise<string> {
  const sessionId = await connection.attach(targetId);
  await connection.send('DOMStorage.enable', {}, sessionId);
  return sessionId;
}

function storageOf(securityOrigin: string) {
  return { securityOrigin, isLocalStorage: true };
}
