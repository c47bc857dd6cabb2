import { isRecord, readChromeOptions } from './chrome-options.ts';
import { webDriverError, type WebDriverAnswer } from './webdriver-error.ts';

/** What a New Session asks for. */
export type Wanted = {
  /** The body of a create. */
  session: Record<string, unknown>;
  /** Capabilities for the driver. */
  driver: Record<string, unknown>;
  /** The first number of a version of Chromium; null: any. */
  majorVersion: string | null;
};

/** A client that is killed leaves a session that nothing uses: it ends then. */
const IDLE_TIMEOUT = '5m';

/** Passed on to the driver, which checks their values. */
const OF_DRIVER = new Set([
  'acceptInsecureCerts',
  'pageLoadStrategy',
  'strictFileInteractability',
  'timeouts',
  'unhandledPromptBehavior',
  'goog:loggingPrefs',
]);
/**
 * Without effect. WebdriverIO always asks for a `webSocketUrl`, and goes on without one. Those of
 * Selenium's Grid and of WebdriverIO are for these themselves.
 */
const IGNORED = /^(webSocketUrl|setWindowRect|se:.*|wdio:.*)$/;
const NAMES = ['chrome', 'chromium', ''];
const PLATFORMS = ['linux', 'any', ''];

/**
 * Chooses from `alwaysMatch` and `firstMatch`, as W3C says: the first alternative that can be had.
 * @returns the error that a client gets, where none can
 */
export function readCapabilities(body: unknown): Wanted | WebDriverAnswer {
  const capabilities = isRecord(body) ? body['capabilities'] : undefined;
  if (!isRecord(capabilities)) return invalid('the body has no object capabilities');
  const { alwaysMatch = {}, firstMatch = [{}] } = capabilities;
  if (!isRecord(alwaysMatch)) return invalid('alwaysMatch is no object');
  if (!Array.isArray(firstMatch) || firstMatch.length === 0 || !firstMatch.every(isRecord))
    return invalid('firstMatch is no list of objects');
  const refusals: string[] = [];
  for (const alternative of firstMatch) {
    const twice = Object.keys(alternative).find((name) => name in alwaysMatch);
    if (twice !== undefined) return invalid(`${twice} is in alwaysMatch and in firstMatch`);
    const wanted = match({ ...alwaysMatch, ...alternative });
    if (typeof wanted !== 'string') return wanted;
    refusals.push(wanted);
  }
  const message = `No such session can be had: ${[...new Set(refusals)].join('; ')}.`;
  return webDriverError('session not created', message);
}

/** @returns why it cannot be had */
function match(asked: Record<string, unknown>): Wanted | string {
  const chrome = readChromeOptions(asked['goog:chromeOptions']);
  if (typeof chrome === 'string') return chrome;
  const driver: Record<string, unknown> = chrome.isInsecure ? { acceptInsecureCerts: true } : {};
  const own = asked['bss:options'] ?? {};
  if (!isRecord(own)) return 'bss:options is no object';
  let majorVersion: string | null = null;
  for (const [name, value] of Object.entries(asked)) {
    if (value === null || name === 'goog:chromeOptions' || name === 'bss:options') continue;
    if (OF_DRIVER.has(name)) driver[name] = value;
    else if (name === 'browserVersion') majorVersion = majorOf(value);
    else if (!IGNORED.test(name)) {
      const refusal = refuse(name, value);
      if (refusal !== null) return refusal;
    }
  }
  const session = { idle_timeout: IDLE_TIMEOUT, ...chrome.session, ...own };
  return { session, driver, majorVersion };
}

/** @returns null: that is what a session has */
function refuse(name: string, value: unknown): string | null {
  const word = typeof value === 'string' ? value.toLowerCase() : null;
  if (name === 'browserName')
    return word !== null && NAMES.includes(word) ? null : 'browserName is chrome or chromium here';
  if (name === 'platformName')
    return word !== null && PLATFORMS.includes(word) ? null : 'platformName is linux here';
  if (name === 'proxy')
    return isRecord(value) && Object.keys(value).length === 0
      ? null
      : 'proxy is not possible here: use egress in bss:options';
  return `${name} is not known here`;
}

/** `stable`, `latest` and the like are what there is. */
function majorOf(version: unknown): string | null {
  return typeof version === 'string' ? (/^\d+/.exec(version)?.[0] ?? null) : null;
}

function invalid(message: string): WebDriverAnswer {
  return webDriverError('invalid argument', message);
}
