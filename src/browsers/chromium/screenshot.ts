import { sleep } from '#src/kernel/async/sleep.ts';
import { within } from '#src/kernel/async/timeout.ts';
import type { Cdp } from '#src/browsers/link/cdp.ts';
import type { RunningBrowser } from '../browsers.ts';
import { openCdp } from './cdp.ts';
import { readTargets } from './version.ts';

/** `quality` is that of JPEG, 0 to 100. */
export type PictureOptions = { width: number; quality: number };

/** Pages that are looked at until a visible one is found; the one in use is among the first. */
const PAGES_MAX = 32;
/** A picture is at most so many times as high as it is wide. */
const HEIGHT_MAX = 2;
/** A screencast without a frame by then is begun anew: its page may be another one by now. */
const FRAME_WITHIN_MS = 1_000;
/** After a round without a picture: a page that only begins to load has none yet. */
const ROUND_MS = 50;

/**
 * A JPEG picture of the page that is visible, no wider than asked for and than the page. Of several
 * visible pages it is the one that was in use last; if none is visible, the last picture of one.
 *
 * It is the first frame of a screencast, which the browser itself copies and scales: no page and no
 * other CDP client sees a change, and a page that does nothing any more has a picture too.
 * @throws Error if there is none before the signal aborts
 */
export async function takePicture(
  address: RunningBrowser['cdp'],
  options: PictureOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  // The end of the connection ends the screencasts and detaches from the pages.
  using cdp = await openCdp(address, signal);
  const casts = followCasts(cdp, options);
  for (;;) {
    const targets = await readTargets(address, signal);
    const pages = targets.filter(({ type }) => type === 'page').slice(0, PAGES_MAX);
    if (pages.length === 0) throw new Error('the browser has no page');
    const { visible, hidden } = await casts.look(pages.map(({ id }) => id));
    // A window that is not shown still has the last picture of its page.
    const page = visible ?? (hidden.length === pages.length ? hidden[0] : undefined);
    const picture = page === undefined ? null : await casts.frameOf(page);
    if (picture !== null) return picture;
    await Promise.race([sleep(ROUND_MS, signal), cdp.closed]);
  }
}

/** Screencasts of pages, by the ids of their targets. */
function followCasts(cdp: Cdp, options: PictureOptions) {
  /** Ids of CDP sessions. */
  const begun = new Map<string, string>();
  const visible = new Map<string, boolean>();
  const frames = new Map<string, string>();
  let changed = Promise.withResolvers<void>();
  cdp.onEvent(({ method, params, sessionId = '' }) => {
    if (method === 'Page.screencastVisibilityChanged')
      visible.set(sessionId, params['visible'] === true);
    else if (method === 'Page.screencastFrame') frames.set(sessionId, String(params['data']));
    else return;
    changed.resolve();
    changed = Promise.withResolvers();
  });

  /**
   * What the session has told by then; null: nothing, and its screencast is given up.
   * @throws Error if the connection ends before that
   */
  async function told<Value>(page: string, values: Map<string, Value>): Promise<Value | null> {
    const sessionId = begun.get(page) ?? '';
    const late = performance.now() + FRAME_WITHIN_MS;
    for (;;) {
      const value = values.get(sessionId);
      if (value !== undefined) return value;
      const leftMs = late - performance.now();
      if (leftMs <= 0) break;
      await within(leftMs, Promise.race([changed.promise, cdp.closed]), () => undefined);
    }
    begun.delete(page);
    await detach(cdp, sessionId);
    return null;
  }

  /** Whether the page is visible; null: it cannot be looked at now. */
  async function isVisible(page: string): Promise<boolean | null> {
    if (!begun.has(page)) {
      const sessionId = await startScreencast(cdp, page, options);
      if (sessionId === null) return null;
      begun.set(page, sessionId);
    }
    return told(page, visible);
  }
  return {
    /** The first page that is visible, and those before it that are not. */
    async look(pages: readonly string[]): Promise<{ visible: string | null; hidden: string[] }> {
      const hidden: string[] = [];
      for (const page of pages) {
        const answer = await isVisible(page);
        if (answer === true) return { visible: page, hidden };
        if (answer === false) hidden.push(page);
      }
      return { visible: null, hidden };
    },
    /** null: there is none for some time. */
    async frameOf(page: string): Promise<Buffer | null> {
      const frame = await told(page, frames);
      return frame === null ? null : Buffer.from(frame, 'base64');
    },
  };
}

/** Attaches to a page; null: it has closed meanwhile, has crashed, or only begins to load. */
async function startScreencast(
  cdp: Cdp,
  targetId: string,
  { width, quality }: PictureOptions,
): Promise<string | null> {
  const size = { maxWidth: width, maxHeight: HEIGHT_MAX * width };
  let sessionId: string | null = null;
  try {
    sessionId = await cdp.attach(targetId);
    await cdp.send('Page.startScreencast', { format: 'jpeg', quality, ...size }, sessionId);
    return sessionId;
  } catch (error) {
    if (!cdp.isOpen()) throw error;
    if (sessionId !== null) await detach(cdp, sessionId);
    return null;
  }
}

/** The page may be gone. */
async function detach(cdp: Cdp, sessionId: string): Promise<void> {
  await cdp.send('Target.detachFromTarget', { sessionId }).catch(() => undefined);
}
