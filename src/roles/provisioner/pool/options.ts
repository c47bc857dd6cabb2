import { isDeepStrictEqual } from 'node:util';
import type { EgressRules } from '#events/egress.ts';
import type { AskedProfile } from '#events/profile.ts';
import type { BrowserOptions, SessionState } from '#events/session.ts';
import type { BrowserSpec } from '#src/browsers/browsers.ts';
import type { ProfileOfSession } from '../profiles.ts';

/**
 * What a browser is launched with: the caller's options, the rules for its connections, and the
 * profile of the one session that it is launched for.
 */
export type LaunchOptions = BrowserOptions & { egress?: EgressRules; profile?: ProfileOfSession };

/** The options that a session's browser is launched with. */
export function launchOptionsOf({
  browser,
  egress,
  profile,
  organizationId,
  id: sessionId,
}: SessionState): LaunchOptions {
  if (egress === undefined && profile === undefined) return browser;
  return {
    ...browser,
    ...(egress === undefined ? {} : { egress }),
    ...(profile === undefined
      ? {}
      : { profile: { ...askedOf(profile), organizationId, sessionId } }),
  };
}

function askedOf({ id, version, save }: AskedProfile): AskedProfile {
  return { id, version, save };
}

/** The options alone that the caller's browser has: what the event of its launch records. */
export function browserOptionsOf(launched: LaunchOptions): BrowserOptions {
  const { egress: _, profile: __, ...options } = launched;
  return options;
}

/** Options of the browsers that are launched in advance and wait idle. */
export const DEFAULTS: LaunchOptions = { viewport: null, locale: null, timezone: null };

/** Screen of a session that requests no viewport, pixels. */
const SCREEN = { width: 1280, height: 800 };

/**
 * Chromium's window is at least 500 pixels wide. On a narrower screen it sticks out, and by a pixel
 * more or less than if it had been launched there.
 */
const WIDTH_MIN = 501;

/** Whether a browser launched with one set of options serves a request for the other as it is. */
export function isSame(one: LaunchOptions, other: LaunchOptions): boolean {
  const [here, there] = [screenOf(one), screenOf(other)];
  return here.width === there.width && here.height === there.height && isAlike(one, other);
}

/**
 * Whether a running browser, launched with `one`, can serve a request for `other`, as it is or
 * after a resize: only the screen of a running browser can change.
 */
export function canServe(one: LaunchOptions, other: LaunchOptions): boolean {
  return isSame(one, other) || (isAlike(one, other) && screenOf(other).width >= WIDTH_MIN);
}

/**
 * Whether all but the screen is the same. Locale, time zone, user agent, extensions and egress
 * proxy are fixed when the process starts, and a display comes with its X server. A place and
 * permissions are there before the browser gets its session. A profile is one session's own.
 */
function isAlike(one: LaunchOptions, other: LaunchOptions): boolean {
  return (
    one.locale === other.locale &&
    one.timezone === other.timezone &&
    (one.headless ?? false) === (other.headless ?? false) &&
    isDeepStrictEqual(one.extensions, other.extensions) &&
    isDeepStrictEqual(one.egress, other.egress) &&
    isDeepStrictEqual(emulationOf(one), emulationOf(other)) &&
    one.profile?.sessionId === other.profile?.sessionId
  );
}

function emulationOf({ geolocation, userAgent, permissions }: BrowserOptions) {
  return {
    ...(geolocation === undefined ? {} : { geolocation }),
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(permissions === undefined ? {} : { permissions }),
  };
}

type WithOptions = { options: LaunchOptions };

/**
 * Matches waiting requests with launches under way: each launch serves one request for the same
 * options.
 * @returns the requests without a launch and the launches without a request, in their order, and
 * how many of these launches will become idle (one with special options will not)
 */
export function matchLaunches<Request extends WithOptions, Launch extends WithOptions>(
  waiting: readonly Request[],
  launching: readonly Launch[],
): { unserved: Request[]; left: Launch[]; spare: number } {
  const left = [...launching];
  const unserved = waiting.filter(({ options }) => {
    const at = left.findIndex((launched) => isSame(launched.options, options));
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
  return { unserved, left, spare: left.filter(({ options }) => isSame(options, DEFAULTS)).length };
}

/** Size of the display and the window, pixels. */
export function screenOf({ viewport }: BrowserOptions): BrowserSpec['screen'] {
  return viewport ?? SCREEN;
}

/** The part of a launch's specification that follows from the options. */
export function specOf(options: LaunchOptions): Omit<BrowserSpec, 'workloadId' | 'vncPassword'> {
  const { locale, timezone, headless } = options;
  return {
    screen: screenOf(options),
    ...(locale === null ? {} : { locale }),
    ...(timezone === null ? {} : { timezone }),
    ...(headless === true ? { headless } : {}),
    ...emulationOf(options),
  };
}
