import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { errorOf, type ApiClient, type Sent } from '#test/support/clients/api-client.ts';
import { startCommandLoad, named, type CommandLoad } from '#test/support/load/command-load.ts';

/** Every invalid body gets the specified error, never a 500, and has no effect. */

let load: CommandLoad;
let api: ApiClient;
beforeAll(async () => {
  load = await startCommandLoad();
  ({ api } = load);
});
afterAll(() => load?.[Symbol.asyncDispose]());

describe('a create is refused where its body', () => {
  const nested = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  test.each<[what: string, body: unknown]>([
    ['is broken off', '{"session_name":'],
    ['is two documents', '{}{}'],
    ['has single quotes', "{'session_name':'a'}"],
    ['has NaN', '{"duration":NaN}'],
    ['is a byte order mark and garbage', '\ufeff[[['],
    ['is null', 'null'],
    ['is a list', '[]'],
    ['is a list of a good body', '[{"session_name":"a"}]'],
    ['is a text', '"session"'],
    ['is a number', '42'],
    ['is a truth', 'true'],
    ['is of invalid UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ['is nested deeply', nested],
    ['has an unknown field', { session_name: 'a', nope: 1 }],
    ['has a field in another case', { Session_Name: 'a' }],
    ['has a prototype', '{"__proto__":{"admin":true}}'],
    ['has an inner prototype', '{"labels":{"__proto__":{"a":"b"}}}'],
    ['has a constructor', '{"constructor":{"prototype":{"admin":true}}}'],
    ['names a field of all objects', { toString: 'a' }],
    ['has a number for a name', { session_name: 1 }],
    ['has null for a name', { session_name: null }],
    ['has an object for a name', { session_name: { a: 1 } }],
    ['has an empty name', { session_name: '' }],
    ['has a long name', { session_name: 'x'.repeat(129) }],
    ['has NUL in the name', { session_name: 'a\u0000b' }],
    ['has a line break in the name', { session_name: 'a\nb' }],
    ['has half a surrogate pair in the name', '{"session_name":"a\\ud800b"}'],
    ['has the other half in the description', '{"description":"\\udfff"}'],
    ['has NUL in the description', { description: 'a\u0000' }],
    ['has a long description', { description: 'x'.repeat(1025) }],
    ['has a list for labels', { labels: ['a'] }],
    ['has a number in a label', { labels: { a: 1 } }],
    ['has a bad label name', { labels: { 'a b': 'c' } }],
    ['has an empty label name', { labels: { '': 'c' } }],
    ['has half a surrogate pair in a label', '{"labels":{"a":"\\ud800"}}'],
    ['has too long a label', { labels: { a: 'x'.repeat(129) } }],
    [
      'has too many labels',
      {
        labels: Object.fromEntries(
          Array(17)
            .keys()
            .map((n) => [n, 'x']),
        ),
      },
    ],
    ['has a text for headless', { headless: 'true' }],
    ['has a place beyond the pole', { geolocation: { latitude: 90.1, longitude: 0 } }],
    ['has half a place', { geolocation: { latitude: 1 } }],
    [
      'has a place of less than no width',
      { geolocation: { latitude: 1, longitude: 1, accuracy: -1 } },
    ],
    ['has a line break in the user agent', { user_agent: 'a\nX-Header: b' }],
    ['has an empty user agent', { user_agent: '' }],
    ['has a user agent beyond ASCII', { user_agent: 'Bücher/1' }],
    ['has a permission that Chromium does not know', { permissions: ['everything'] }],
    ['has a text for permissions', { permissions: 'geolocation' }],
    ['has a text for a viewport', { viewport: '1280x800' }],
    ['has half a viewport', { viewport: { width: 1280 } }],
    ['has a tiny viewport', { viewport: { width: 1, height: 1 } }],
    ['has a broken viewport', { viewport: { width: 1280.5, height: 800 } }],
    ['has a deep viewport', { viewport: { width: 1280, height: 800, depth: 3 } }],
    ['has a bad locale', { locale: 'not a locale' }],
    ['has a bad time zone', { timezone: 'Mars/Olympus' }],
    ['has a time zone with a way out', { timezone: '../../etc/passwd' }],
  ])('%s', async (_, body) => {
    const reply = await api.send('POST', '/api/sessions', { body });
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
  });
});

const BAD_TEXTS =
  '0m 0h 0h0m 90s 1.5h -1h 25h 24h1m 1441m 60m1h 1H 30M 1d 1 h m hm 1hour 1h30 1h1h 1h-1m +1h ' +
  '99999h ١h 0x1h 1e1h null P1H PT1H 1h,30m 1:30';
const oddTexts = ['', ' 1h', '1h ', '1h 30m', '1h\n', '1h\u0000', `${'9'.repeat(400)}m`];
const noTexts = [30, 0, -1, 1.5, null, true, false, {}, [], ['1h'], { hours: 1 }];
const BAD_DURATIONS = [...BAD_TEXTS.split(' '), ...oddTexts, ...noTexts];

describe('an invalid duration is INVALID_DURATION, with the value that the client sent', () => {
  test.each(named(BAD_DURATIONS))('%s', async (_, duration) => {
    const create = await api.create({ duration });
    const extend = await api.extend(load.session, duration);
    for (const reply of [create, extend]) {
      expect(errorOf(reply)).toBe('400 INVALID_DURATION');
      expect(reply.body.context).toEqual({ duration });
      expect(reply.body.message).toContain('between 1 minute and 24 hours');
    }
    expect(errorOf(await api.create({ idle_timeout: duration }))).toBe('400 INVALID_DURATION');
  });

  it('an extension without a duration', async () => {
    for (const body of [{}, undefined]) {
      const reply = await api.send('POST', `/api/sessions/${load.session}/extend`, { body });
      expect(errorOf(reply)).toBe('400 INVALID_DURATION');
    }
  });
});

describe('an extension is refused where its body', () => {
  test.each<[what: string, body: unknown]>([
    ['has an unknown field', { duration: '1h', until: 'tomorrow' }],
    ['is a list', ['1h']],
    ['is a text', '"1h"'],
    ['is broken off', '{"duration"'],
    ['has a prototype', '{"duration":"1h","__proto__":{}}'],
  ])('%s', async (_, body) => {
    const reply = await api.send('POST', `/api/sessions/${load.session}/extend`, { body });
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
  });
});

describe('bodies', () => {
  const types = 'text/plain application/xml multipart/form-data application/jsonp x'.split(' ');
  test.each([...types, 'application/x-www-form-urlencoded'])('of type %s', async (type) => {
    const sent: Sent = { body: '{"session_name":"a"}', headers: { 'content-type': type } };
    const paths = ['/api/sessions', `/api/sessions/${load.session}/extend`];
    for (const path of paths)
      expect(errorOf(await api.send('POST', path, sent))).toBe('415 UNSUPPORTED_MEDIA_TYPE');
  });

  it('of JSON with another media type', async () => {
    for (const type of ['application/vnd.api+json', 'text/json', 'application/json5']) {
      const sent: Sent = { body: '{}', headers: { 'content-type': type } };
      const reply = await api.send('POST', '/api/sessions', sent);
      expect(errorOf(reply)).toBe('415 UNSUPPORTED_MEDIA_TYPE');
    }
  });

  it('without a type', async () => {
    const reply = await api.raw(
      `POST /api/sessions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${load.key}\r\n` +
        'Content-Length: 20\r\n\r\n{"session_name":"a"}',
    );
    expect(errorOf(reply)).toBe('415 UNSUPPORTED_MEDIA_TYPE');
  });

  it('that are too large, with and without a Content-Length', async () => {
    const large = JSON.stringify({ description: 'x'.repeat(70_000) });
    const announced = await api.send('POST', '/api/sessions', { body: large });
    const chunked = await api.raw(
      `POST /api/sessions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${load.key}\r\n` +
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
        `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
    );
    for (const reply of [announced, chunked]) expect(errorOf(reply)).toBe('413 PAYLOAD_TOO_LARGE');
  });

  it('of a stop, which takes none, are ignored', async () => {
    const body = { anything: 1 };
    const reply = await api.send('DELETE', `/api/sessions/ses_AAAAAAAAAAAAAAAAAAAAAA`, { body });
    expect(errorOf(reply)).toBe('404 SESSION_NOT_FOUND');
  });
});

describe('an Idempotency-Key', () => {
  test.each(['', ' ', 'a b', 'x'.repeat(256), 'ä'])('is refused: %j', async (key) => {
    const reply = await api.create({}, { 'idempotency-key': key });
    expect(errorOf(reply)).toBe('400 INVALID_REQUEST');
  });
});

it('the refused requests have changed nothing', () => load.expectUnchanged(200));
