import { setTimeout as pause } from 'node:timers/promises';
import type { BrowserSpec, RunningBrowser } from '../browsers.ts';
import { openWindow, type ChromiumWindow, type Sizes } from './window.ts';
import { openDisplay } from '../rfb.ts';

/** Between two looks at what the page has been told by now. */
const LOOK_MS = 5;
/** Without a window manager Chromium leaves the last column and row of a screen free. */
const MARGIN = 1;

/**
 * Gives a browser that runs the screen and the window that it would have been launched with, by
 * what every browser speaks: VNC for the screen, CDP for the window. Resolves when its page has
 * been told; nothing of this stays behind but the size.
 * @throws Error where that is not so before the signal aborts; the browser is of some size then
 */
export async function fitScreen(
  { cdp, vnc }: RunningBrowser,
  { vncPassword, screen }: Pick<BrowserSpec, 'vncPassword' | 'screen'>,
  signal: AbortSignal,
): Promise<void> {
  using display = await openDisplay(vnc, vncPassword, signal);
  using window = await openWindow(cdp, signal);
  const before = await window.sizes();
  await display.resize(screen);
  // Until Chromium has heard of it, it would cut the window down to the old screen.
  await untilTold(window, ({ screen: now }) => isSame(now, [screen.width, screen.height]), signal);
  await window.place(screen);
  await untilTold(window, (sizes) => isFilled(sizes, before), signal);
}

async function untilTold(
  window: ChromiumWindow,
  isTold: (sizes: Sizes) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!isTold(await window.sizes())) await pause(LOOK_MS, undefined, { signal });
}

/** The window fills its screen, and its page the window but for the same bars as before. */
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
