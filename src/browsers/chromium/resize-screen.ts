import { setTimeout as pause } from 'node:timers/promises';
import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import { openWindow, type ChromiumWindow, type Sizes } from './window.ts';
import { openDisplay } from '../rfb.ts';

/** Pause between two reads of the page's sizes. */
const POLL_MS = 5;
/** Without a window manager Chromium leaves the screen's last column and row free. */
const MARGIN = 1;

/**
 * Resizes a running browser as if it had been launched with this screen: the screen by VNC, the
 * window by CDP. Resolves when its page has the new sizes; nothing else of the browser changes.
 * @throws Error where the signal aborts before that; the browser's size is undefined then
 */
export async function resizeScreen(
  { cdp, vnc }: RunningBrowser,
  { vncPassword, screen }: Pick<BrowserSpec, 'vncPassword' | 'screen'>,
  signal: AbortSignal,
): Promise<void> {
  using display = await openDisplay(vnc, vncPassword, signal);
  using window = await openWindow(cdp, signal);
  const before = await window.sizes();
  await display.resize(screen);
  // Before Chromium knows the new screen it would limit the window to the old one.
  await waitForSizes(
    window,
    ({ screen: now }) => isSame(now, [screen.width, screen.height]),
    signal,
  );
  await window.place(screen);
  await waitForSizes(window, (sizes) => isFilled(sizes, before), signal);
}

async function waitForSizes(
  window: ChromiumWindow,
  isReached: (sizes: Sizes) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!isReached(await window.sizes())) await pause(POLL_MS, undefined, { signal });
}

/**
 * Whether the window fills its screen, and its page the window except for the same bars as before.
 */
function isFilled({ screen, outer, inner }: Sizes, before: Sizes): boolean {
  const isAsLarge = [0, 1].every((at) => {
    const missing = (screen[at] ?? 0) - (outer[at] ?? 0);
    return missing >= 0 && missing <= MARGIN;
  });
  return isAsLarge && isSame(barsOf({ outer, inner }), barsOf(before));
}

function barsOf({ outer, inner }: Pick<Sizes, 'outer' | 'inner'>): Sizes['outer'] {
  return [outer[0] - inner[0], outer[1] - inner[1]];
}

function isSame(one: Sizes['outer'], other: Sizes['outer']): boolean {
  return one[0] === other[0] && one[1] === other[1];
}
