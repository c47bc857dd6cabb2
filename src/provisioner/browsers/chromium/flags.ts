import type { BrowserSpec, Endpoint } from '../browsers.ts';

/**
 * How Chromium is told what to be, and how it says where it listens. Pure: all adapters share it.
 */

export type CdpEndpoint = Endpoint & { path: string };

/**
 * The first two are the omnibox's popups: each would keep a renderer of its own, 50 MiB together.
 */
const DISABLED_FEATURES =
  'WebUIOmniboxPopup,WebUIOmniboxAimPopup,Translate,MediaRouter,OptimizationHints';
/** What these turn off are dialogs and background tasks that a single-use browser never needs. */
const FLAGS = [
  '--window-position=0,0',
  // Else it ends with its last window, where it has a screen; Browser.close ends it all the same.
  '--keep-alive-for-test',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  '--password-store=basic',
  '--disable-gpu',
  '--disable-breakpad',
  `--disable-features=${DISABLED_FEATURES}`,
];

/** The arguments of a browser with one blank page, but for its profile and its port. */
export function chromiumFlags({ screen, locale, headless }: BrowserSpec): string[] {
  return [
    `--window-size=${screen.width},${screen.height}`,
    // Else its screen would be of 800 x 600.
    ...(headless === true
      ? ['--headless=new', `--screen-info={${screen.width}x${screen.height}}`]
      : []),
    ...FLAGS,
    // What pages are told; the browser's own words follow its environment.
    ...(locale === undefined ? [] : [`--accept-lang=${locale}`]),
    'about:blank',
  ];
}

/** The variables that go with the arguments. */
export function chromiumEnvironment({ locale, timezone }: BrowserSpec): Record<string, string> {
  const language = locale?.replaceAll('-', '_');
  return {
    // LANGUAGE counts only beside a LANG that is not C; no such locale has to be installed.
    ...(language === undefined ? {} : { LANGUAGE: language, LANG: `${language}.UTF-8` }),
    ...(timezone === undefined ? {} : { TZ: timezone }),
  };
}

/** Where a line of its stderr says that it listens; null where the line says something else. */
export function parseListening(line: string): CdpEndpoint | null {
  const match = /DevTools listening on ws:\/\/([\d.]+):(\d+)(\/devtools\/browser\/\S+)/.exec(line);
  if (match === null) return null;
  const [, host = '', port = '', path = ''] = match;
  return { host, port: Number(port), path };
}
