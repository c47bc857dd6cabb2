/**
 * Capabilities as W3C WebDriver processes them (7.2), of a New Session at /wd/hub and of BiDi's
 * `session.new`.
 */

export type Capabilities = Record<string, unknown>;

/** Why a value is not valid; null: it is. */
type Check = (value: unknown) => string | null;

const STRATEGIES = ['none', 'eager', 'normal'];
const PROXY_TYPES = ['pac', 'direct', 'autodetect', 'system', 'manual'];
const PROMPTS = ['alert', 'beforeUnload', 'confirm', 'default', 'file', 'prompt'];
const PROMPT_HANDLERS = ['dismiss', 'accept', 'dismiss and notify', 'accept and notify', 'ignore'];
const LOG_LEVELS = ['ALL', 'DEBUG', 'INFO', 'WARNING', 'SEVERE', 'OFF'];
const SOCKS_VERSION_MAX = 255;

const isBoolean: Check = (value) => (typeof value === 'boolean' ? null : 'is no boolean');
const isString: Check = (value) => (typeof value === 'string' ? null : 'is no string');
const isObject: Check = (value) => (isRecord(value) ? null : 'is no object');
const isMs: Check = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? null : 'is no whole number of ms';
const isList: Check = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
    ? null
    : 'is no list of strings';
const oneOf =
  (words: readonly string[]): Check =>
  (value) =>
    words.includes(value as string) ? null : `is none of: ${words.join(', ')}`;
const isSocksVersion: Check = (value) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= SOCKS_VERSION_MAX
    ? null
    : `is no whole number up to ${SOCKS_VERSION_MAX}`;

/** An object whose fields are these alone. */
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (!isRecord(value)) return 'is no object';
    for (const [name, field] of Object.entries(value)) {
      const check = own(checks, name);
      const flaw = check === undefined ? 'is not known' : check(field);
      if (flaw !== null) return below(name, flaw);
    }
    return null;
  };
/** An object whose fields all have such a value. */
const each =
  (check: Check): Check =>
  (value) =>
    fields(Object.fromEntries(Object.keys(value ?? {}).map((name) => [name, check])))(value);

const promptHandlers = Object.fromEntries(PROMPTS.map((name) => [name, oneOf(PROMPT_HANDLERS)]));
const isPromptBehavior: Check = (value) =>
  typeof value === 'string' ? oneOf(PROMPT_HANDLERS)(value) : fields(promptHandlers)(value);

/**
 * Of the standard, and of extensions that are known here: their values would be refused by the
 * driver, after a session was made for it. `setWindowRect` and `userAgent` are only answered.
 */
const CHECKS: Readonly<Record<string, Check>> = {
  acceptInsecureCerts: isBoolean,
  browserName: isString,
  browserVersion: isString,
  platformName: isString,
  pageLoadStrategy: oneOf(STRATEGIES),
  proxy: fields({
    proxyType: oneOf(PROXY_TYPES),
    proxyAutoconfigUrl: isString,
    ftpProxy: isString,
    httpProxy: isString,
    noProxy: isList,
    sslProxy: isString,
    socksProxy: isString,
    socksVersion: isSocksVersion,
  }),
  strictFileInteractability: isBoolean,
  timeouts: fields({
    script: (value) => (value === null ? null : isMs(value)),
    pageLoad: isMs,
    implicit: isMs,
  }),
  unhandledPromptBehavior: isPromptBehavior,
  webSocketUrl: isBoolean,
  'bss:options': isObject,
  'goog:chromeOptions': (value) => (isRecord(value) ? chromeOptions(value) : 'is no object'),
  'goog:loggingPrefs': each(oneOf(LOG_LEVELS)),
  'se:downloadsEnabled': isBoolean,
};

/** Of what chromedriver knows; what it does not know is without effect. */
const CHROME_OPTIONS: Readonly<Record<string, Check>> = {
  args: isList,
  binary: isString,
  detach: isBoolean,
  excludeSwitches: isList,
  extensions: isList,
  localState: isObject,
  mobileEmulation: isObject,
  perfLoggingPrefs: isObject,
  prefs: isObject,
  useAutomationExtension: isBoolean,
};

function chromeOptions(options: Record<string, unknown>): string | null {
  for (const [name, value] of Object.entries(options)) {
    // Java's client sends null for what is not set.
    const flaw = value === null ? null : (own(CHROME_OPTIONS, name)?.(value) ?? null);
    if (flaw !== null) return below(name, flaw);
  }
  return null;
}

const NAMES = ['chrome', 'chromium', ''];
const PLATFORMS = ['linux', 'any', ''];
/** Of a request and of each of its objects; merged they are up to twice as many names each. */
const ALTERNATIVES_MAX = 64;
const NAMES_MAX = 200;
/** Proxies that ask for what a session has. */
const NO_PROXY: readonly unknown[] = ['direct', 'system', undefined];

/**
 * Validates and merges a request's `alwaysMatch` and `firstMatch`: the alternatives, in the order
 * in which they are tried. Those that have names as this service has them come before those that
 * write them otherwise (`Chrome`, `LINUX`), as Grids take them.
 * @returns what W3C does not allow
 */
export function mergeCapabilities(request: unknown): Capabilities[] | string {
  if (!isRecord(request)) return 'capabilities is no object';
  const { alwaysMatch = {}, firstMatch = [{}] } = request;
  const always = validateCapabilities(alwaysMatch);
  if (typeof always === 'string') return `alwaysMatch${always}`;
  if (!Array.isArray(firstMatch) || firstMatch.length === 0)
    return 'firstMatch is no list of objects';
  if (firstMatch.length > ALTERNATIVES_MAX)
    return `firstMatch has more than ${ALTERNATIVES_MAX} alternatives`;
  const merged: Capabilities[] = [];
  for (const [index, asked] of (firstMatch as unknown[]).entries()) {
    const alternative = validateCapabilities(asked);
    if (typeof alternative === 'string') return `firstMatch[${index}]${alternative}`;
    const twice = Object.keys(alternative).find((name) => Object.hasOwn(always, name));
    if (twice !== undefined) return `${shown(twice)} is in alwaysMatch and in firstMatch`;
    merged.push({ ...always, ...alternative });
  }
  return [...merged.filter(isExact), ...merged.filter((asked) => !isExact(asked))];
}

function isExact({ browserName = '', platformName = '' }: Capabilities): boolean {
  return NAMES.includes(browserName as string) && ['linux', ''].includes(platformName as string);
}

/** Why no browser here is as asked for; null: all are. */
export function mismatchOf(asked: Capabilities): string | null {
  const { browserName = '', platformName = '', proxy } = asked;
  if (!isOneOf(NAMES, browserName)) return 'browserName is chrome or chromium here';
  if (!isOneOf(PLATFORMS, platformName)) return 'platformName is linux here';
  const { proxyType, ...further } = (proxy ?? {}) as Record<string, unknown>;
  const isNone = NO_PROXY.includes(proxyType) && Object.keys(further).length === 0;
  return isNone ? null : 'proxy is not possible here: use egress in bss:options';
}

function isOneOf(words: readonly string[], value: unknown): boolean {
  return words.includes(String(value).toLowerCase());
}

/**
 * The capabilities without those that are null.
 * @returns why they are not valid
 */
function validateCapabilities(asked: unknown): Capabilities | string {
  if (!isRecord(asked)) return ' is no object';
  const entries = Object.entries(asked);
  if (entries.length > NAMES_MAX) return ` has more than ${NAMES_MAX} names`;
  const valid: [string, unknown][] = [];
  for (const [name, value] of entries) {
    if (value === null) continue;
    const check = own(CHECKS, name);
    if (check === undefined && !isExtension(name))
      return below(name, 'is not known: a capability that is not W3C’s has a colon');
    const flaw = check?.(value) ?? null;
    if (flaw !== null) return below(name, flaw);
    valid.push([name, value]);
  }
  return Object.fromEntries(valid);
}

/** Of another vendor; a misspelt one of this service would be taken without effect. */
function isExtension(name: string): boolean {
  return name.includes(':') && !name.startsWith('bss:');
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own<Value>(values: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

/** A flaw of a field, as one of what it stands in: `.timeouts.script is no …`. */
function below(name: string, flaw: string): string {
  return `.${shown(name)}${flaw.startsWith('.') ? '' : ' '}${flaw}`;
}

/** Of a name that an answer repeats. */
function shown(name: string): string {
  return name.slice(0, 100);
}
