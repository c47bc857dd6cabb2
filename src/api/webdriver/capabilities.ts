import { readChromeOptions, type ChromeOptions } from './chrome-options.ts';
import { isRecord, validateCapabilities, type Capabilities } from './validate-capabilities.ts';
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
/** Proxies that ask for what a session has. */
const NO_PROXY = ['direct', 'system', undefined];
const NAMES = ['chrome', 'chromium', ''];
const PLATFORMS = ['linux', 'any', ''];
/** Of names in the answer, each of at most so many characters. */
const IGNORED_MAX = 100;
const IGNORED_LENGTH_MAX = 100;

/**
 * Validates, merges and matches as W3C says (7.2): the first alternative of `firstMatch`, with
 * `alwaysMatch`, that can be had. One that has the names as this service has them comes before one
 * that writes them otherwise (`Chrome`, `LINUX`), as Grids take them.
 * @returns the error that a client gets, where none can
 */
export function readCapabilities(body: unknown): Wanted | WebDriverAnswer {
  const capabilities = isRecord(body) ? body['capabilities'] : undefined;
  if (!isRecord(capabilities)) return invalid('the body has no object capabilities');
  const { alwaysMatch = {}, firstMatch = [{}] } = capabilities;
  const always = validateCapabilities(alwaysMatch);
  if (typeof always === 'string') return invalid(`alwaysMatch ${always}`);
  if (!Array.isArray(firstMatch) || firstMatch.length === 0)
    return invalid('firstMatch is no list of objects');
  const merged: Capabilities[] = [];
  for (const [index, asked] of (firstMatch as unknown[]).entries()) {
    const alternative = validateCapabilities(asked);
    if (typeof alternative === 'string') return invalid(`firstMatch[${index}] ${alternative}`);
    const twice = Object.keys(alternative).find((name) => Object.hasOwn(always, name));
    if (twice !== undefined) return invalid(`${twice} is in alwaysMatch and in firstMatch`);
    merged.push({ ...always, ...alternative });
  }
  const exact = merged.findIndex((asked) => isExact(asked) && typeof match(asked) !== 'string');
  const refusals: string[] = [];
  for (const asked of exact === -1 ? merged : merged.slice(exact)) {
    const wanted = match(asked);
    if (typeof wanted !== 'string') return wanted;
    refusals.push(wanted);
  }
  const message = `No such session can be had: ${[...new Set(refusals)].join('; ')}.`;
  return webDriverError('session not created', message);
}

function isExact({ browserName = 'chrome', platformName = 'linux' }: Capabilities): boolean {
  return ['chrome', 'chromium'].includes(browserName as string) && platformName === 'linux';
}

/** @returns why it cannot be had */
function match(asked: Capabilities): Wanted | string {
  const refusal = refuse(asked);
  if (refusal !== null) return refusal;
  const chrome = readChromeOptions(asked['goog:chromeOptions']);
  if (typeof chrome === 'string') return chrome;
  const driver: Record<string, unknown> = chrome.isInsecure ? { acceptInsecureCerts: true } : {};
  const echoed: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (OF_DRIVER.has(name)) driver[name] = value;
    else if (ECHOED.has(name)) echoed[name] = value;
    else if (!TAKEN.has(name) && !DRIVERS_OWN.test(name)) ignored.push(name);
  }
  ignored.push(...chrome.ignored);
  const own = asked['bss:options'] as object | undefined;
  return {
    session: { idle_timeout: IDLE_TIMEOUT, ...chrome.session, ...own },
    driver,
    majorVersion: majorOf(asked['browserVersion']),
    isBidi: asked['webSocketUrl'] === true,
    device: chrome.device,
    echoed,
    ignored: ignored.slice(0, IGNORED_MAX).map((name) => name.slice(0, IGNORED_LENGTH_MAX)),
  };
}

/** @returns null: that is what a session has */
function refuse({ browserName = '', platformName = '', proxy }: Capabilities): string | null {
  if (!isOneOf(NAMES, browserName)) return 'browserName is chrome or chromium here';
  if (!isOneOf(PLATFORMS, platformName)) return 'platformName is linux here';
  const { proxyType, ...further } = (proxy ?? {}) as Record<string, unknown>;
  const isNone = NO_PROXY.includes(proxyType as string) && Object.keys(further).length === 0;
  return isNone ? null : 'proxy is not possible here: use egress in bss:options';
}

function isOneOf(words: readonly string[], value: unknown): boolean {
  return words.includes(String(value).toLowerCase());
}

/** `stable`, `latest` and the like are what there is. */
function majorOf(version: unknown): string | null {
  return typeof version === 'string' ? (/^\d+/.exec(version)?.[0] ?? null) : null;
}

function invalid(message: string): WebDriverAnswer {
  return webDriverError('invalid argument', `${message}.`);
}
