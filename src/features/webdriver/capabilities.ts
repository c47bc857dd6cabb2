import {
  isRecord,
  mergeCapabilities,
  mismatchOf,
  type Capabilities,
} from '#src/kernel/http/webdriver-capabilities.ts';
import { readChromeOptions, type ChromeOptions } from './chrome-options.ts';
import { webDriverError, type WebDriverAnswer } from './webdriver-error.ts';

/** What a New Session asks for. */
export type Wanted = {
  /** The body of a create. */
  session: Record<string, unknown>;
  /** Capabilities for the driver. */
  driver: Record<string, unknown>;
  /** The first number of a version of Chromium; null: any. */
  majorVersion: string | null;
  /** The client wants WebDriver BiDi beside. */
  isBidi: boolean;
  /** What the first window pretends to be; null: nothing. */
  device: ChromeOptions['device'];
  /** Of the client's capabilities, those that are answered as they are. */
  echoed: Record<string, unknown>;
  /** What was asked for and has no effect. */
  ignored: string[];
};

/** A client that is killed leaves a session that nothing uses: it ends then. */
const IDLE_TIMEOUT = '5m';

/** Passed on to the driver. */
const OF_DRIVER = new Set([
  'acceptInsecureCerts',
  'pageLoadStrategy',
  'strictFileInteractability',
  'timeouts',
  'unhandledPromptBehavior',
  'goog:loggingPrefs',
]);
/** Read below. */
const TAKEN = new Set([
  'browserName',
  'browserVersion',
  'platformName',
  'proxy',
  'webSocketUrl',
  'goog:chromeOptions',
  'bss:options',
]);
/** chromedriver says that it has all of them. */
const DRIVERS_OWN = /^(?:webauthn|fedcm):/;
/** Selenium's clients look for it in the answer before they ask for a file. */
const ECHOED = new Set(['se:downloadsEnabled']);
/** Of names in the answer, each of at most so many characters. */
const IGNORED_MAX = 100;
const IGNORED_LENGTH_MAX = 100;

/**
 * Chooses the first alternative that can be had, by W3C's algorithm.
 * @param versions of the browsers that servers launch; `unknown` and the like may be any
 * @returns the error that a client gets, where none can
 */
export function readCapabilities(
  body: unknown,
  versions: readonly string[] = [],
): Wanted | WebDriverAnswer {
  const merged = mergeCapabilities(isRecord(body) ? body['capabilities'] : undefined);
  if (typeof merged === 'string') return webDriverError('invalid argument', `${merged}.`);
  const refusals = new Set<string>();
  // All alternatives have the same ones where they stand in alwaysMatch.
  const read = new Map<unknown, ReturnType<typeof readChromeOptions>>();
  for (const asked of merged) {
    const options = asked['goog:chromeOptions'];
    const chrome = read.get(options) ?? readChromeOptions(options);
    read.set(options, chrome);
    const wanted = mismatchOfVersion(asked, versions) ?? match(asked, chrome);
    if (typeof wanted !== 'string') return wanted;
    refusals.add(wanted);
  }
  const message = `No such session can be had: ${[...refusals].join('; ')}.`;
  return webDriverError('session not created', message);
}

/** @returns why it cannot be had */
function match(asked: Capabilities, chrome: ChromeOptions | string): Wanted | string {
  const refusal = mismatchOf(asked);
  if (refusal !== null) return refusal;
  if (typeof chrome === 'string') return chrome;
  const driver: Record<string, unknown> = chrome.isInsecure ? { acceptInsecureCerts: true } : {};
  const echoed: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (OF_DRIVER.has(name)) driver[name] = value;
    else if (ECHOED.has(name)) echoed[name] = value;
    else if (!TAKEN.has(name) && !DRIVERS_OWN.test(name)) ignored.push(name);
  }
  const own = asked['bss:options'] as object | undefined;
  return {
    session: { idle_timeout: IDLE_TIMEOUT, ...chrome.session, ...own },
    driver,
    majorVersion: majorOf(asked['browserVersion']),
    isBidi: asked['webSocketUrl'] === true,
    device: chrome.device,
    echoed,
    ignored: [...ignored, ...chrome.ignored]
      .slice(0, IGNORED_MAX)
      .map((name) => name.slice(0, IGNORED_LENGTH_MAX)),
  };
}

/** Why no server has the version that is asked for; null: one has it, or may have it. */
function mismatchOfVersion(
  { browserVersion }: Capabilities,
  versions: readonly string[],
): string | null {
  const major = majorOf(browserVersion);
  const mayBe = (version: string) => [major, null].includes(majorOf(version));
  if (major === null || versions.length === 0 || versions.some(mayBe)) return null;
  return `browserVersion is ${[...new Set(versions)].join(' or ')} here`;
}

/** `stable`, `latest` and the like are what there is. */
function majorOf(version: unknown): string | null {
  return typeof version === 'string' ? (/^\d+/.exec(version)?.[0] ?? null) : null;
}
