import { expect, test } from 'vitest';
import { readCapabilities } from '#src/api/webdriver/capabilities.ts';
import { parseWebDriverId, webDriverId } from '#src/api/webdriver/session-id.ts';

const always = (alwaysMatch: object) => readCapabilities({ capabilities: { alwaysMatch } });

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
  [{ 'goog:chromeOptions': { prefs: { download: 1 } } }, /prefs is not possible/],
  [{ 'goog:chromeOptions': { args: ['--user-data-dir=/tmp'] } }, /use profile in bss:options/],
  [{ 'goog:chromeOptions': { debuggerAddress: 'x:1' } }, /debuggerAddress is not possible/],
  [{ 'moz:firefoxOptions': {} }, /moz:firefoxOptions is not known/],
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
