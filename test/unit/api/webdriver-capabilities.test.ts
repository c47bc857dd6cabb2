import { describe, expect, test } from 'vitest';
import { readCapabilities, type Wanted } from '#src/features/webdriver/capabilities.ts';
import { parseWebDriverId, webDriverId } from '#src/features/webdriver/session-id.ts';

const always = (alwaysMatch: unknown) => readCapabilities({ capabilities: { alwaysMatch } });

test('a session of WebDriver ends after five idle minutes, unless its client says otherwise', () => {
  expect(always({})).toMatchObject({ session: { idle_timeout: '5m' } });
  const chosen = always({ 'bss:options': { idle_timeout: '1m', labels: { team: 'web' } } });
  expect(chosen).toMatchObject({ session: { idle_timeout: '1m', labels: { team: 'web' } } });
});

test('arguments of Chrome that are options of a session become these', () => {
  const args = ['--headless=new', 'window-size=800,600', '--lang=de-CH', '--user-agent=Bot/1'];
  const wanted = always({ 'goog:chromeOptions': { args: [...args, '--no-sandbox'], prefs: {} } });
  expect(wanted).toMatchObject({
    session: {
      headless: true,
      viewport: { width: 800, height: 600 },
      locale: 'de-CH',
      user_agent: 'Bot/1',
    },
    driver: {},
  });
  const insecure = always({ 'goog:chromeOptions': { args: ['--ignore-certificate-errors'] } });
  expect(insecure).toMatchObject({ driver: { acceptInsecureCerts: true } });
});

test('the first alternative that can be had is taken, and without any the reasons are listed', () => {
  const firstMatch = [
    { browserName: 'firefox' },
    { browserName: 'chrome', timeouts: { script: 1 } },
  ];
  const chosen = readCapabilities({ capabilities: { firstMatch } });
  expect(chosen).toMatchObject({ driver: { timeouts: { script: 1 } } });
  const none = [{ browserName: 'firefox' }, { platformName: 'mac' }];
  expect(readCapabilities({ capabilities: { firstMatch: none } })).toMatchObject({
    status: 500,
    body: { value: { message: expect.stringMatching(/browserName .*; platformName is linux/) } },
  });
});

test.each([
  [{}],
  [{ capabilities: [] }],
  [{ capabilities: { alwaysMatch: 1 } }],
  [{ capabilities: { firstMatch: [] } }],
  [
    {
      capabilities: { alwaysMatch: { browserName: 'chrome' }, firstMatch: [{ browserName: 'x' }] },
    },
  ],
])('a body that W3C does not allow is an invalid argument: %j', (body) => {
  const error = { value: { error: 'invalid argument' } };
  expect(readCapabilities(body)).toMatchObject({ status: 400, body: error });
});

test.each([
  [{ 'goog:chromeOptions': { args: ['--user-data-dir=/tmp'] } }, /use profile in bss:options/],
  [{ 'goog:chromeOptions': { args: ['load-extension=/x'] } }, /POST .api.extensions/],
  [{ 'goog:chromeOptions': { args: ['--proxy-server=http://a:1'] } }, /egress in bss:options/],
  [{ 'goog:chromeOptions': { args: ['--host-resolver-rules=MAP * a'] } }, /egress/],
  [{ 'goog:chromeOptions': { args: ['--remote-debugging-address=0.0.0.0'] } }, /gateway alone/],
  [{ 'goog:chromeOptions': { debuggerAddress: 'x:1' } }, /debuggerAddress is not possible/],
  [{ 'goog:chromeOptions': { binary: '/bin/sh' } }, /binary is not possible/],
  [{ 'goog:chromeOptions': { extensions: ['AAAA'] } }, /POST .api.extensions/],
  [{ proxy: { proxyType: 'manual', httpProxy: 'a:1' } }, /use egress in bss:options/],
  [{ proxy: { proxyType: 'pac', proxyAutoconfigUrl: 'http://a/b' } }, /use egress/],
  [{ browserName: 'MicrosoftEdge' }, /browserName is chrome/],
])('what a session cannot have is refused by name: %j', (alwaysMatch, message) => {
  const value = { error: 'session not created', message: expect.stringMatching(message) };
  expect(always(alwaysMatch)).toMatchObject({ body: { value } });
});

test('the id of a session of WebDriver names the session and that of its driver', () => {
  const both = { sessionId: 'ses_a-b', driverId: '0123456789abcdef0123456789abcdef' };
  expect(parseWebDriverId(webDriverId(both))).toEqual(both);
  for (const other of [
    'ses_a',
    `ses_a.${'g'.repeat(32)}`,
    `.${both.driverId}`,
    `a/b.${both.driverId}`,
  ])
    expect(parseWebDriverId(other)).toBeNull();
});

/** A whole number, and no safe one. */
const TOO_LONG = 9_007_199_254_740_992;
/** By their names, values that W3C does not allow. */
const WRONG: Readonly<Record<string, readonly unknown[]>> = {
  acceptInsecureCerts: [1, [], {}, 'false'],
  browserName: [1, [], {}, false],
  browserVersion: [1, [], {}, false],
  platformName: [1, [], {}, false],
  pageLoadStrategy: [1, [], {}, false, 'invalid', 'NONE', 'Eager', ' eager', 'eager '],
  proxy: [
    ...[1, [], '{}', { proxyType: 'SYSTEM' }, { proxyType: null }, { proxyType: ['pac'] }],
    ...[{ proxytype: 'system' }, { ' proxyType': 'system' }, { proxyType: 'system ' }],
    ...[
      { proxyType: 'manual', noProxy: 'a' },
      { proxyType: 'manual', socksVersion: 256 },
    ],
    ...[{ proxyType: 'manual', httpProxy: 1 }, { toString: 'system' }],
  ],
  timeouts: [
    ...[1, [], '{}', false, { invalid: 10 }, { PAGELOAD: 10 }, { ' pageLoad': 10 }],
    ...[{ pageLoad: null }, { pageLoad: false }, { pageLoad: '10' }, { pageLoad: 2.5 }],
    ...[{ pageLoad: -1 }, { pageLoad: TOO_LONG }, { implicit: null }, { script: -1 }],
    ...[{ pageLoad: 10, invalid: 10 }, { pageLoad: { value: 10 } }],
  ],
  setWindowRect: [true, false, 1, [], {}, 'false'],
  userAgent: ['x', 1],
  strictFileInteractability: [1, [], {}, 'false'],
  unhandledPromptBehavior: [
    ...[1, [], false, 'DISMISS', 'dismissABC', ' dismiss', 'dismiss '],
    ...[{ nope: 'accept' }, { alert: 'ACCEPT' }, { alert: null }, { default: {} }],
  ],
  webSocketUrl: [1, 'true', [], {}],
  'goog:chromeOptions': [
    ...[1, [], 'x', { args: 'x' }, { args: [1] }, { prefs: [] }, { mobileEmulation: 'iPhone' }],
    ...[{ excludeSwitches: 'x' }, { binary: 1 }, { extensions: 'x' }],
  ],
  'goog:loggingPrefs': [1, [], { browser: 'FOO' }, { browser: 1 }],
  'bss:options': [1, [], 'x'],
  'bss:optoins': [{}],
  'se:downloadsEnabled': ['true'],
};
const UNKNOWN = ['browser', 'chromeOptions', 'platform', 'safari.options', 'version', 'toString'];
const cases = [
  ...Object.entries(WRONG).flatMap(([name, values]) => values.map((value) => [name, value])),
  ...UNKNOWN.map((name) => [name, {}]),
] as [string, unknown][];

test.each(cases)('W3C does not allow %s to be %j, wherever it stands', (name, value) => {
  const capability = { [name]: value };
  const refused = { status: 400, body: { value: { error: 'invalid argument' } } };
  expect(always(capability)).toMatchObject(refused);
  for (const firstMatch of [[capability], [{}, capability], [capability, {}]])
    expect(readCapabilities({ capabilities: { firstMatch } })).toMatchObject(refused);
});

const RIGHT: Readonly<Record<string, readonly unknown[]>> = {
  acceptInsecureCerts: [true, false],
  browserName: ['chrome', 'Chrome', 'chromium', ''],
  browserVersion: ['stable', '150', ''],
  platformName: ['linux', 'LINUX', 'Any'],
  pageLoadStrategy: ['none', 'eager', 'normal'],
  proxy: [{}, { proxyType: 'direct' }, { proxyType: 'system' }],
  timeouts: [{}, { script: 0, pageLoad: 2, implicit: TOO_LONG - 1 }, { script: null }],
  strictFileInteractability: [true, false],
  unhandledPromptBehavior: ['dismiss', 'accept and notify', 'ignore', {}, { alert: 'accept' }],
  webSocketUrl: [true, false],
  'goog:loggingPrefs': [{}, { browser: 'ALL', performance: 'OFF' }],
  'webauthn:virtualAuthenticators': [true],
};

test.each(Object.entries(RIGHT))('W3C allows %s to be any of %j', (name, values) => {
  for (const value of values) expect(always({ [name]: value })).toMatchObject({ ignored: [] });
  // Null is W3C's word for what is not asked for, also beside another value.
  for (const value of values) {
    const capabilities = { alwaysMatch: { [name]: null }, firstMatch: [{ [name]: value }] };
    expect(readCapabilities({ capabilities })).toMatchObject({ ignored: [] });
  }
});

test('an alternative that has the names as they are here comes before one that has not', () => {
  const firstMatch = [
    { platformName: 'LINUX', pageLoadStrategy: 'none' },
    { platformName: 'linux', pageLoadStrategy: 'eager' },
  ];
  const alwaysMatch = { browserName: 'chrome' };
  const chosen = readCapabilities({ capabilities: { alwaysMatch, firstMatch } });
  expect(chosen).toMatchObject({ driver: { pageLoadStrategy: 'eager' } });
});

test('what W3C does not let stand in both is an invalid argument, though another fits', () => {
  const alwaysMatch = { timeouts: { script: 10 } };
  const firstMatch = [{}, { timeouts: { pageLoad: 10 } }];
  const refused = readCapabilities({ capabilities: { alwaysMatch, firstMatch } });
  expect(refused).toMatchObject({ status: 400 });
});

test('a script with the defaults of Selenide and SeleniumBase gets its session', () => {
  const args = [
    ...['--mute-audio', '--disable-notifications', '--no-sandbox', '--disable-dev-shm-usage'],
    ...['--proxy-bypass-list=<-loopback>', '--remote-debugging-port=9222', '--log-level=3'],
    ...['--disable-blink-features=AutomationControlled', 'start-maximized', '--no-proxy-server'],
    ...["--proxy-server='direct://'", '--window-size=1280,720', '--lang=en_US'],
  ];
  const prefs = {
    credentials_enable_service: false,
    'profile.default_content_setting_values.notifications': 1,
    profile: { default_content_setting_values: { geolocation: 1, automatic_downloads: 1 } },
    download: { default_directory: '/tmp' },
    'intl.accept_languages': 'de-CH,de',
  };
  const options = { args, prefs, excludeSwitches: ['enable-automation'], nope: 1, detach: null };
  const wanted = always({ 'goog:chromeOptions': options, 'LT:Options': {}, 'se:name': 'x' });
  expect(wanted).toMatchObject({
    session: {
      viewport: { width: 1280, height: 720 },
      locale: 'en-US',
      permissions: ['notifications', 'geolocation'],
    },
    ignored: [
      'LT:Options',
      'se:name',
      'goog:chromeOptions.excludeSwitches',
      'goog:chromeOptions.nope',
      ...args.slice(0, -2).map((argument) => `--${argument.replace(/^--/, '').split('=')[0]}`),
      'goog:chromeOptions.prefs.credentials_enable_service',
      'goog:chromeOptions.prefs.profile.default_content_setting_values.automatic_downloads',
      'goog:chromeOptions.prefs.download.default_directory',
      'goog:chromeOptions.prefs.intl.accept_languages',
    ],
  });
});

test.each([
  ['1920,5000', { width: 1920, height: 2160 }],
  ['99999x1', { width: 3840, height: 240 }],
  ['1,1080', { width: 320, height: 1080 }],
  ['1920', undefined],
  ['wide,high', undefined],
  ['', undefined],
])('a window of %j is as near to it as a screen can be, and named', (size, viewport) => {
  const wanted = always({ 'goog:chromeOptions': { args: [`--window-size=${size}`] } });
  expect(wanted).toMatchObject({ ignored: ['--window-size'] });
  expect((wanted as Wanted).session).toEqual({
    idle_timeout: '5m',
    ...(viewport === undefined ? {} : { viewport }),
  });
});

test('a mobile emulation is a user agent and the metrics of a device', () => {
  const deviceMetrics = { width: 360, height: 640, pixelRatio: 3 };
  const mobileEmulation = { deviceMetrics, userAgent: 'Phone/1', deviceName: 'Nexus 5' };
  expect(always({ 'goog:chromeOptions': { mobileEmulation } })).toMatchObject({
    session: { user_agent: 'Phone/1' },
    device: { width: 360, height: 640, pixelRatio: 3, isMobile: true, isTouch: true },
    ignored: ['goog:chromeOptions.mobileEmulation.deviceName'],
  });
});

test('what has no effect is named within bounds', () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`v:${n}`, 1]));
  const { ignored } = always({ [`v:${'x'.repeat(9_999)}`]: 1, ...many }) as { ignored: string[] };
  expect(ignored).toHaveLength(100);
  expect(ignored[0]).toHaveLength(100);
});

describe('a New Session of 1 MiB takes no more than its bytes:', () => {
  const named = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`v:${n}`, 1]));
  const refused = (message: RegExp) => ({
    status: 400,
    body: { value: { error: 'invalid argument', message: expect.stringMatching(message) } },
  });

  test('alternatives are bounded, before they are merged', () => {
    const many = Array.from({ length: 65 }, () => ({}));
    const asked = { capabilities: { firstMatch: many } };
    expect(readCapabilities(asked)).toMatchObject(refused(/^firstMatch has more than 64 /));
    const most = { capabilities: { firstMatch: many.slice(1) } };
    expect(readCapabilities(most)).toMatchObject({ ignored: [] });
  });

  test('names are bounded, wherever they stand', () => {
    expect(always(named(201))).toMatchObject(refused(/^alwaysMatch has more than 200 /));
    expect(readCapabilities({ capabilities: { firstMatch: [{}, named(201)] } })).toMatchObject(
      refused(/^firstMatch\[1\] has more than 200 /),
    );
    expect(always(named(200))).toMatchObject({ session: {} });
  });

  test('options of Chrome are read once for all alternatives that have them', () => {
    let reads = 0;
    const options = {
      get args() {
        reads += 1;
        return ['--user-data-dir=/tmp'];
      },
    };
    const alwaysMatch = { 'goog:chromeOptions': options };
    const firstMatch = Array.from({ length: 64 }, () => ({}));
    const asked = { capabilities: { alwaysMatch, firstMatch } };
    expect(readCapabilities(asked)).toMatchObject({ status: 500 });
    // Validated, and read.
    expect(reads).toBe(2);
  });

  test('more arguments than a call takes are named within bounds', () => {
    const args = Array.from({ length: 180_000 }, () => '-x');
    const { ignored } = always({ 'goog:chromeOptions': { args } }) as { ignored: string[] };
    expect(ignored).toHaveLength(100);
  });

  test('a long name above many others is not repeated for each', () => {
    const prefs = { ['x'.repeat(400_000)]: named(50_000) };
    const { ignored } = always({ 'goog:chromeOptions': { prefs } }) as { ignored: string[] };
    expect(ignored).toHaveLength(100);
  });
});

describe('a version of the browser', () => {
  const firstMatch = [
    { browserVersion: '99', pageLoadStrategy: 'none' },
    { browserVersion: '150.0', pageLoadStrategy: 'eager' },
  ];
  const read = (versions: string[], asked: object[] = firstMatch) =>
    readCapabilities({ capabilities: { firstMatch: asked } }, versions);

  test('that no server has is no match: the next alternative is taken', () => {
    const chosen = { driver: { pageLoadStrategy: 'eager' }, majorVersion: '150' };
    expect(read(['150.0.7871.12', '149.0.1.2'])).toMatchObject(chosen);
  });

  test('that no server has in any alternative makes no session', () => {
    const message = expect.stringContaining('browserVersion is 148.0.1.2 or 15.0.1.2 here');
    expect(read(['148.0.1.2', '148.0.1.2', '15.0.1.2'])).toMatchObject({
      status: 500,
      body: { value: { error: 'session not created', message } },
    });
  });

  test('is seen later where a server’s is not known, or none is there', () => {
    for (const versions of [[], ['simulated'], ['148.0.1.2', 'unknown']])
      expect(read(versions)).toMatchObject({ driver: { pageLoadStrategy: 'none' } });
    expect(read(['148.0.1.2'], [{ browserVersion: 'stable' }])).toMatchObject({ ignored: [] });
  });
});
