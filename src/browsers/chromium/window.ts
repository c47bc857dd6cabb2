import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import { openCdp } from './cdp.ts';

/** Width and height, CSS pixels. */
type Size = readonly [width: number, height: number];

/** The sizes of screen, window and page, as the page sees them. */
export type Sizes = { screen: Size; outer: Size; inner: Size };

/** The window of a browser's first page, and its page. */
export type ChromiumWindow = {
  sizes(): Promise<Sizes>;
  /** Requests that the window fills the screen; the change follows somewhat later. */
  place(screen: BrowserSpec['screen']): Promise<void>;
} & Disposable;

/** The only script that the service runs in a page, before any user is connected. */
export const SIZES_SCRIPT =
  '({screen:[screen.width,screen.height],outer:[outerWidth,outerHeight],' +
  'inner:[innerWidth,innerHeight]})';

/**
 * Connects to a browser that is not in use yet; changes nothing but the window's size.
 * @throws Error if it does not answer before the signal aborts
 */
export async function openWindow(
  address: RunningBrowser['cdp'],
  signal: AbortSignal,
): Promise<ChromiumWindow> {
  const cdp = await openCdp(address, signal);
  try {
    const { targetInfos } = await cdp.send<Targets>('Target.getTargets');
    const page = targetInfos.find(({ type }) => type === 'page');
    if (page === undefined) throw new Error('the browser has no page');
    const { targetId } = page;
    const [{ windowId }, sessionId] = await Promise.all([
      cdp.send<{ windowId: number }>('Browser.getWindowForTarget', { targetId }),
      cdp.attach(targetId),
    ]);
    return {
      async sizes() {
        const asked = { expression: SIZES_SCRIPT, returnByValue: true };
        const { result } = await cdp.send<Evaluated>('Runtime.evaluate', asked, sessionId);
        return result.value;
      },
      async place({ width, height }) {
        const bounds = { left: 0, top: 0, width, height };
        await cdp.send('Browser.setWindowBounds', { windowId, bounds });
      },
      [Symbol.dispose]: cdp[Symbol.dispose],
    };
  } catch (error) {
    cdp[Symbol.dispose]();
    throw error;
  }
}

type Targets = { targetInfos: { type: string; targetId: string }[] };
type Evaluated = { result: { value: Sizes } };
