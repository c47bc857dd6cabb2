/** Validates capabilities as W3C WebDriver says (7.2, "validate capabilities"). */

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
      if (check === undefined) return `has no ${shown(name)}`;
      const flaw = check(field);
      if (flaw !== null) return `has a ${name} that ${flaw}`;
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
    if (flaw !== null) return `has a ${name} that ${flaw}`;
  }
  return null;
}

/**
 * The capabilities without those that are null.
 * @returns why they are not valid
 */
export function validateCapabilities(asked: unknown): Capabilities | string {
  if (!isRecord(asked)) return 'is no object';
  const valid: [string, unknown][] = [];
  for (const [name, value] of Object.entries(asked)) {
    if (value === null) continue;
    const check = own(CHECKS, name);
    if (check === undefined && !isExtension(name))
      return `has ${shown(name)}, which is not known: a capability that is not W3C’s has a colon`;
    const flaw = check?.(value) ?? null;
    if (flaw !== null) return `has a ${name} that ${flaw}`;
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

/** Of a name that an answer repeats. */
function shown(name: string): string {
  return name.slice(0, 100);
}
