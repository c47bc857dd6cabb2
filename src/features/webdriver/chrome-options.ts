import { isRecord } from '#src/kernel/http/webdriver-capabilities.ts';
import { permissionNames } from '#src/roles/api/schemas/emulation.ts';
import { CreateSessionBody } from '#src/roles/api/schemas/requests.ts';
import { localeOf } from '#src/roles/api/sessions/locale.ts';

/** What `goog:chromeOptions` asks of a session. */
export type ChromeOptions = {
  /** Fields of the body of a create. */
  session: Record<string, unknown>;
  isInsecure: boolean;
  /** Metrics of a device that the first window has; null: none. */
  device: Device | null;
  /** Names of what is not done. */
  ignored: string[];
};

export type Device = {
  width: number;
  height: number;
  pixelRatio: number;
  isMobile: boolean;
  isTouch: boolean;
};

const EGRESS = 'what a session reaches is ruled by egress in bss:options';
const EXTENSIONS =
  'it is of another machine; upload it by POST /api/extensions and name it in extensions of ' +
  'bss:options';
const PROGRAM = 'the browser is that of the session';

/**
 * What is refused, and why: it asks for the folder, the program or the network of another, and a
 * script that goes on without it would do something else than it says. All others without an entry
 * here or in `APPLIED` have no effect, and are named in the answer (`bss:ignored`).
 */
const REFUSED: Readonly<Record<string, string>> = {
  // Arguments.
  'user-data-dir': 'use profile in bss:options',
  'load-extension': EXTENSIONS,
  'disable-extensions-except': EXTENSIONS,
  'proxy-server': EGRESS,
  'proxy-pac-url': EGRESS,
  'host-rules': EGRESS,
  'host-resolver-rules': EGRESS,
  'remote-debugging-address': 'the browser is reached by the gateway alone',
  // Options.
  binary: PROGRAM,
  debuggerAddress: PROGRAM,
  androidPackage: PROGRAM,
  extensions: EXTENSIONS,
};

type Apply = (value: string, options: ChromeOptions) => boolean;

/** Arguments that are options of a session; false: not with this value. */
const APPLIED: Readonly<Record<string, Apply>> = {
  headless: (_value, { session }) => (session['headless'] = true),
  'ignore-certificate-errors': (_value, options) => (options.isInsecure = true),
  lang: (value, { session }) => takeLocale(value, session),
  'user-agent': (value, { session }) => {
    session['user_agent'] = value;
    return true;
  },
  'window-size': (value, { session }) => takeSize(value, session),
};

/** A setting that allows something to all pages, as a permission. */
const PERMISSION = /^profile\.default_content_setting_values\.([a-z_]+)$/;
const PERMISSIONS: Readonly<Record<string, (typeof permissionNames)[number]>> = {
  clipboard: 'clipboard-read',
  geolocation: 'geolocation',
  media_stream_camera: 'camera',
  media_stream_mic: 'microphone',
  midi_sysex: 'midi-sysex',
  notifications: 'notifications',
};
const ALLOW = 1;

/** @returns a text that says what is refused and why */
export function readChromeOptions(asked: unknown): ChromeOptions | string {
  const options: ChromeOptions = { session: {}, isInsecure: false, device: null, ignored: [] };
  if (!isRecord(asked)) return options;
  const { args = [], prefs, mobileEmulation, ...others } = asked;
  for (const [name, value] of Object.entries(others)) {
    if (isEmpty(value)) continue;
    const refused = refusal(`goog:chromeOptions.${name}`, name);
    if (refused !== null) return refused;
    options.ignored.push(`goog:chromeOptions.${name}`);
  }
  for (const argument of (args ?? []) as string[]) {
    const refused = take(argument, options);
    if (refused !== null) return refused;
  }
  if (isRecord(prefs)) takePrefs(prefs, options);
  if (isRecord(mobileEmulation)) takeDevice(mobileEmulation, options);
  return options;
}

/** @returns why it is refused; null: it is taken */
function take(argument: string, options: ChromeOptions): string | null {
  const [name, value] = splitAtFirst(argument.replace(/^-{1,2}/, ''));
  if (Object.hasOwn(APPLIED, name)) {
    if (APPLIED[name]?.(value, options) !== true) options.ignored.push(`--${name}`);
    return null;
  }
  const isNone = name === 'proxy-server' && /^"?'?direct:/.test(value);
  const refused = isNone ? null : refusal(`the argument --${name} of goog:chromeOptions`, name);
  if (refused === null) options.ignored.push(`--${name}`);
  return refused;
}

function takePrefs(prefs: Record<string, unknown>, { session, ignored }: ChromeOptions): void {
  const permissions: string[] = [];
  for (const [name, value] of flat(prefs)) {
    const permission = PERMISSIONS[PERMISSION.exec(name)?.[1] ?? ''];
    if (permission !== undefined && value === ALLOW) permissions.push(permission);
    else if (name === 'intl.accept_languages' && session['locale'] === undefined) {
      const [first = ''] = String(value).split(',');
      if (!takeLocale(first, session)) ignored.push(`goog:chromeOptions.prefs.${name}`);
    } else ignored.push(`goog:chromeOptions.prefs.${name}`);
  }
  if (permissions.length > 0) session['permissions'] = permissions;
}

/**
 * By their whole names: `{profile: {a: 1}}` is `profile.a`, too. Of a longer name than any that has
 * an effect only the beginning is kept, as all that stand below it repeat it.
 */
function flat(prefs: Record<string, unknown>, above = ''): [string, unknown][] {
  return Object.entries(prefs).flatMap(([name, value]) => {
    const whole = `${above}${name}`.slice(0, PREF_LENGTH_MAX);
    return isRecord(value) && above.split('.').length < DEPTH_MAX
      ? flat(value, `${whole}.`)
      : [[whole, value] as [string, unknown]];
  });
}
const DEPTH_MAX = 8;
const PREF_LENGTH_MAX = 200;

/** `deviceName` is of the driver's own list, which it takes for browsers of its own alone. */
function takeDevice(asked: Record<string, unknown>, options: ChromeOptions): void {
  const { userAgent, deviceMetrics, ...others } = asked;
  const ignored = Object.keys(others);
  if (typeof userAgent === 'string') options.session['user_agent'] = userAgent;
  else if (userAgent !== undefined) ignored.push('userAgent');
  if (isRecord(deviceMetrics)) {
    const { width, height, pixelRatio, mobile, touch } = deviceMetrics;
    options.device = {
      width: sizeOf(width),
      height: sizeOf(height),
      pixelRatio: sizeOf(pixelRatio),
      isMobile: mobile !== false,
      isTouch: touch !== false,
    };
  } else if (deviceMetrics !== undefined) ignored.push('deviceMetrics');
  for (const name of ignored) options.ignored.push(`goog:chromeOptions.mobileEmulation.${name}`);
}

/** 0 is what the window has. */
function sizeOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value < SIZE_MAX ? value : 0;
}
const SIZE_MAX = 10_000;

/** A size that no screen has becomes the nearest one, as pages are often to be seen whole. */
function takeSize(value: string, session: Record<string, unknown>): boolean {
  const asked = /^(\d+) *[,x] *(\d+)$/.exec(value.trim())?.slice(1).map(Number);
  if (asked === undefined) return false;
  const [width = 0, height = 0] = asked;
  const viewport = { width: nearest(width, SCREEN.width), height: nearest(height, SCREEN.height) };
  session['viewport'] = viewport;
  return viewport.width === width && viewport.height === height;
}
const SCREEN: Record<'width' | 'height', Bounds> = CreateSessionBody.properties.viewport.properties;
/** As JSON Schema has them. */
type Bounds = { type: 'integer'; minimum?: number; maximum?: number };

function nearest(value: number, { minimum = 0, maximum = Infinity }: Bounds): number {
  return Math.min(maximum, Math.max(minimum, value));
}

function takeLocale(value: string, session: Record<string, unknown>): boolean {
  const tag = localeOf(value.trim());
  if (tag === null) return false;
  session['locale'] = tag;
  return true;
}

function refusal(what: string, name: string): string | null {
  const reason = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined;
  return reason === undefined ? null : `${what} is not possible here: ${reason}`;
}

function splitAtFirst(text: string): [string, string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
