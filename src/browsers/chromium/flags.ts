import type { BrowserSpec, Endpoint } from '../browsers.ts';

/**
 * Chromium's arguments and environment, and the line in which it prints its CDP endpoint. Pure.
 */

export type CdpEndpoint = Endpoint & { path: string };

const DISABLED_FEATURES = [
  // Popups of the address bar: each would keep its own renderer, 50 MiB together.
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  // A renderer for the next site, whose start competes with the first page.
  'SpareRendererForSitePerProcess',
  'Translate',
  'MediaRouter',
  'OptimizationHints',
  // Builds that are branded as Chrome ignore --load-extension otherwise.
  'DisableLoadExtensionCommandLineSwitch',
];
/** These disable dialogs and background tasks that a single-use browser never needs. */
const FLAGS = [
  '--window-position=0,0',
  // Otherwise a headful browser ends with its last window. Browser.close still ends it.
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
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
];

/**
 * Without a screen a page's print() shows nothing, whatever the preferences say. But it would leave
 * the page `being printed` for ever: Page.printToPDF is refused then. Without a preview it is over.
 */
const HEADLESS_FLAGS = ['--disable-print-preview'];

/**
 * Lead all that a browser sends through a proxy of its own host: no name is resolved, not even
 * loopback is reached past it, and nothing goes by UDP (WebRTC, QUIC).
 */
function proxyFlags(port: number): string[] {
  return [
    `--proxy-server=http://127.0.0.1:${port}`,
    '--proxy-bypass-list=<-loopback>',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--disable-quic',
  ];
}

/** For a profile that is kept. */
const PROFILE_FLAGS = [
  // Cookies without an expiry stay valid; without files of a session no page is opened again.
  '--restore-last-session',
  // Local storage is written after a second instead of up to a minute.
  '--enable-aggressive-domstorage-flushing',
];

/**
 * The arguments of a browser with one blank page, without profile and port.
 * @param proxyPort the port of its egress proxy on its own host's loopback; null: it has none
 */
export function chromiumFlags(
  { screen, locale, headless, userAgent, profile }: BrowserSpec,
  proxyPort: number | null = null,
): string[] {
  return [
    `--window-size=${screen.width},${screen.height}`,
    // A headless screen has 800 x 600 pixels by default.
    ...(headless === true
      ? ['--headless=new', `--screen-info={${screen.width}x${screen.height}}`, ...HEADLESS_FLAGS]
      : []),
    ...FLAGS,
    ...(proxyPort === null ? [] : proxyFlags(proxyPort)),
    ...(profile === undefined ? [] : PROFILE_FLAGS),
    // What pages ask for; how they format follows the environment.
    ...(locale === undefined ? [] : [`--accept-lang=${locale}`]),
    ...(userAgent === undefined ? [] : [`--user-agent=${userAgent}`]),
    'about:blank',
  ];
}

/** The arguments of the extensions, each unpacked into a folder of its id below the given one. */
export function extensionFlags({ extensions = [] }: BrowserSpec, folder: string): string[] {
  if (extensions.length === 0) return [];
  const folders = extensions.map(({ id }) => `${folder}/${id}`).join(',');
  return [`--load-extension=${folders}`, `--disable-extensions-except=${folders}`];
}

/** The environment variables that go with the arguments. */
export function chromiumEnvironment({ locale, timezone }: BrowserSpec): Record<string, string> {
  const language = locale?.replaceAll('-', '_');
  return {
    // LANGUAGE is ignored if LANG is C. The locale need not be installed.
    ...(language === undefined ? {} : { LANGUAGE: language, LANG: `${language}.UTF-8` }),
    ...(timezone === undefined ? {} : { TZ: timezone }),
  };
}

/** The CDP endpoint in a line of Chromium's stderr; null for any other line. */
export function parseListening(line: string): CdpEndpoint | null {
  const match = /DevTools listening on ws:\/\/([\d.]+):(\d+)(\/devtools\/browser\/\S+)/.exec(line);
  if (match === null) return null;
  const [, host = '', port = '', path = ''] = match;
  return { host, port: Number(port), path };
}
