import type { BrowserOptions } from '#events/session.ts';
import type { BrowserSpec } from '../browsers/browsers.ts';

/** What the browsers are that wait for whoever comes. */
export const DEFAULTS: BrowserOptions = { viewport: null, locale: null, timezone: null };

/** Display of a session that asks for none. */
const SCREEN = { width: 1280, height: 800 };

/**
 * Chromium's window is at least 500 wide. On narrower screens it sticks out, by a pixel more or
 * less where it was launched there.
 */
const WIDTH_MIN = 501;

/** True where a browser launched as one serves who asked for the other. */
export function isSame(one: BrowserOptions, other: BrowserOptions): boolean {
  const [here, there] = [screenOf(one), screenOf(other)];
  return here.width === there.width && here.height === there.height && isAlike(one, other);
}

/**
 * True where a browser launched as one can be made what the other asks for while it runs: only its
 * screen can change.
 */
export function canBecome(one: BrowserOptions, other: BrowserOptions): boolean {
  return isSame(one, other) || (isAlike(one, other) && screenOf(other).width >= WIDTH_MIN);
}

/**
 * Language and time zone are a process's from its start, and what CDP puts in their place ends with
 * the CDP session that set it; a display comes and goes with its X server.
 */
function isAlike(one: BrowserOptions, other: BrowserOptions): boolean {
  return (
    one.locale === other.locale &&
    one.timezone === other.timezone &&
    (one.headless ?? false) === (other.headless ?? false)
  );
}

/**
 * Matches requests that wait with launches under way, each launch to one request that asks for just
 * what it is launched as.
 * @returns the requests left, in their order, and how many of the launches left will wait idle: one
 * for a request that has gone meanwhile will not
 */
export function matchLaunches<Request extends { options: BrowserOptions }>(
  waiting: readonly Request[],
  launching: readonly BrowserOptions[],
): { unserved: Request[]; spare: number } {
  const left = [...launching];
  const unserved = waiting.filter(({ options }) => {
    const at = left.findIndex((launched) => isSame(launched, options));
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
  return { unserved, spare: left.filter((options) => isSame(options, DEFAULTS)).length };
}

/** Display and window, pixels. */
export function screenOf({ viewport }: BrowserOptions): BrowserSpec['screen'] {
  return viewport ?? SCREEN;
}

/** What a launch is told. */
export function specOf(options: BrowserOptions): Omit<BrowserSpec, 'workloadId' | 'vncPassword'> {
  const { locale, timezone, headless } = options;
  return {
    screen: screenOf(options),
    ...(locale === null ? {} : { locale }),
    ...(timezone === null ? {} : { timezone }),
    ...(headless === true ? { headless } : {}),
  };
}
