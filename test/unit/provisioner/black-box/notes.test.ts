import { beforeEach, describe, expect, test } from 'vitest';
import { createNotes, blackBoxOf, type Notes } from '#src/features/black-box/notes.ts';
import { maskAddress, maskText } from '#src/features/black-box/mask.ts';
import { readers } from '#src/features/black-box/read-event.ts';

const NOW = Date.parse('2026-11-25T12:00:00.000Z');
const JWT = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxIn0', 'c2lnbmF0dXJl'].join('.');
const HEX = '0123456789abcdef0123456789abcdef';

let notes: Notes;
beforeEach(() => {
  notes = createNotes();
});
/** The page tells an event. */
function tell(name: string, params: Record<string, unknown>, now = NOW): void {
  readers[name]?.(params, notes, { targetId: 'main', now });
}
function logError(...values: unknown[]): void {
  const args = values.map((value) => ({ type: 'string', value }));
  tell('Runtime.consoleAPICalled', { type: 'error', args, timestamp: NOW });
}
const navigate = (url: string, more = {}) =>
  tell('Page.frameNavigated', { frame: { id: 'main', url, ...more } });

describe('a black box', () => {
  test('has nothing where pages told nothing', () => {
    expect(blackBoxOf(notes)).toBeNull();
    expect(blackBoxOf(notes, { signal: 'SIGKILL' })).toEqual({ signal: 'SIGKILL' });
  });

  test('has the errors of the console, not what else is written there', () => {
    tell('Runtime.consoleAPICalled', {
      type: 'error',
      args: [
        { type: 'string', value: 'failed' },
        { type: 'object', description: 'Error: inner' },
        { type: 'number', value: 3 },
        { type: 'undefined' },
      ],
      timestamp: NOW,
      stackTrace: { callFrames: [{ url: 'https://shop.test/app.js?v=3' }] },
    });
    for (const type of ['log', 'warning', 'debug'])
      tell('Runtime.consoleAPICalled', { type, args: [{ value: type }], timestamp: NOW });
    tell('Log.entryAdded', {
      entry: { source: 'security', level: 'error', text: 'mixed content' },
    });
    tell('Log.entryAdded', { entry: { source: 'other', level: 'warning', text: 'slow' } });
    expect(blackBoxOf(notes)?.consoleErrors).toEqual([
      {
        at: '2026-11-25T12:00:00.000Z',
        text: 'failed Error: inner 3 undefined',
        address: 'https://shop.test/app.js',
      },
      { at: '2026-11-25T12:00:00.000Z', text: 'mixed content' },
    ]);
  });

  test('has failed requests, and pages that could not be loaded', () => {
    const text = 'Failed to load resource: net::ERR_CONNECTION_REFUSED';
    const url = 'https://ann:pw@api.test/items?token=abc#top';
    tell('Log.entryAdded', { entry: { source: 'network', level: 'error', text, url } });
    navigate('chrome-error://chromewebdata/', { unreachableUrl: 'https://gone.test/?q=1' });
    expect(blackBoxOf(notes)).toEqual({
      address: 'https://gone.test/',
      failedRequests: [
        { at: '2026-11-25T12:00:00.000Z', text, address: 'https://api.test/items' },
        {
          at: '2026-11-25T12:00:00.000Z',
          text: 'the page could not be loaded',
          address: 'https://gone.test/',
        },
      ],
    });
  });

  test('has exceptions, dialogs with their answers, and crashed pages', () => {
    const exception = { description: 'TypeError: boom\n    at https://a.test/x.js:1:2' };
    const exceptionDetails = { text: 'Uncaught', exception, url: 'https://a.test/x.js' };
    tell('Runtime.exceptionThrown', { timestamp: NOW, exceptionDetails });
    const opening = { type: 'confirm', message: 'Delete all?', url: 'https://a.test/' };
    tell('Page.javascriptDialogOpening', opening);
    tell('Page.javascriptDialogClosed', { result: true, userInput: 'hunter2' });
    tell('Page.javascriptDialogOpening', { ...opening, type: 'prompt', defaultPrompt: 'hunter2' });
    tell('Inspector.targetCrashed', {});
    const box = blackBoxOf(notes);
    expect(box?.exceptions?.[0]?.text).toBe(
      'Uncaught TypeError: boom\n    at https://a.test/x.js:1:2',
    );
    expect(box?.dialogs).toMatchObject([
      { kind: 'confirm', text: 'Delete all?', accepted: true },
      { kind: 'prompt', address: 'https://a.test/' },
    ]);
    expect(box?.dialogs?.[1]).not.toHaveProperty('accepted');
    expect(box?.pageCrashes).toBe(1);
    expect(JSON.stringify(box)).not.toContain('hunter2');
  });

  test('has the address of the page, and of no frame in it', () => {
    navigate('https://a.test/one?secret=1');
    navigate('https://ads.test/', { parentId: 'main' });
    tell('Page.navigatedWithinDocument', { frameId: 'main', url: 'https://a.test/two#part' });
    tell('Page.navigatedWithinDocument', { frameId: 'frame', url: 'https://ads.test/x' });
    expect(blackBoxOf(notes)).toEqual({ address: 'https://a.test/two' });
  });

  test('keeps the last 20 of a kind, 500 characters of each, and counts the others', () => {
    for (let n = 1; n <= 30; n += 1) logError(`error ${n} ${'long '.repeat(200)}`);
    const box = blackBoxOf(notes);
    expect(box?.dropped).toBe(10);
    expect(box?.consoleErrors).toHaveLength(20);
    expect(box?.consoleErrors?.[0]?.text).toMatch(/^error 11 /);
    for (const { text } of box?.consoleErrors ?? []) expect(text).toHaveLength(500);
  });

  test('is at most 16 KiB, of which each kind has its part', () => {
    const wide = '€ '.repeat(400);
    for (let n = 1; n <= 20; n += 1) {
      logError(`console ${n} ${wide}`);
      const exceptionDetails = { text: `exception ${n} ${wide}` };
      tell('Runtime.exceptionThrown', { timestamp: NOW, exceptionDetails });
      tell('Page.javascriptDialogOpening', { type: 'alert', message: `alert ${n} ${wide}` });
      tell('Log.entryAdded', {
        entry: { source: 'network', level: 'error', text: `${n} ${wide}` },
      });
    }
    navigate(`https://a.test/${'path/'.repeat(500)}`);
    const box = blackBoxOf(notes);
    expect(Buffer.byteLength(JSON.stringify(box))).toBeLessThanOrEqual(16 * 1024);
    const { consoleErrors = [], exceptions = [], dialogs = [], failedRequests = [] } = box ?? {};
    const kept = [consoleErrors, exceptions, dialogs, failedRequests];
    for (const list of kept) expect(list.length).toBeGreaterThan(1);
    expect((box?.dropped ?? 0) + kept.flat().length).toBe(80);
    // The newest stay.
    expect(consoleErrors.at(-1)?.text).toMatch(/^console 20 /);
  });

  test.each([
    ['Runtime.consoleAPICalled', { type: 'error', args: 'x', timestamp: 1e300, stackTrace: 7 }],
    ['Runtime.exceptionThrown', { timestamp: 'soon', exceptionDetails: null }],
    ['Log.entryAdded', { entry: { level: 'error', text: { a: 1 }, timestamp: Number.NaN } }],
    ['Page.frameNavigated', {}],
    ['Page.javascriptDialogOpening', { type: { a: 1 }, message: '\ud800', url: 5 }],
  ])('takes %s of any shape', (name, params) => {
    tell(name, params);
    const box = JSON.parse(JSON.stringify(blackBoxOf(notes))) as Record<string, { at: string }[]>;
    for (const entries of Object.values(box ?? {}))
      for (const { at } of entries) expect(at).toBe('2026-11-25T12:00:00.000Z');
  });
});

describe('masking', () => {
  test.each([
    ['GET https://ann:hunter2@shop.test/a?b=c#d failed', 'GET https://…@shop.test/a?… failed'],
    ['see https://shop.test/cb#access_token=abc', 'see https://shop.test/cb#…'],
    ['POST /login?code=abc&x=1 was 500', 'POST /login?… was 500'],
    ['{"password":"two words","user":"ann"}', '{"password":…,"user":"ann"}'],
    ["{refresh_token: 'abc def', n: 1}", '{refresh_token: …, n: 1}'],
    ['x-api-key: 12,3abc retry', 'x-api-key: … retry'],
    ['Cookie: sid=abc; theme=dark', 'Cookie: …'],
    ['Authorization: Digest username=x, y', 'Authorization: …'],
    ['sent Bearer abc.def', 'sent Bearer …'],
    [`token is ${JWT} here`, 'token is … here'],
    ['key sk_live_abcdefgh123', 'key …'],
    [`hash ${HEX}!`, 'hash …!'],
    ['card 4111 1111 1111 1111 declined', 'card … declined'],
    ['img data:image/png;base64,AAAA', 'img data:image/png,…'],
    ['cart.total is not a function', 'cart.total is not a function'],
    ["Unexpected token '<' at line 3", "Unexpected token '<' at line 3"],
  ])('%s', (said, kept) => {
    expect(maskText(said)).toBe(kept);
  });

  test.each([
    ['https://ann:pw@shop.test:8443/pay/now?card=1#x', 'https://shop.test:8443/pay/now'],
    [`https://shop.test/reset/${HEX}`, 'https://shop.test/reset/…'],
    ['data:text/html,<b>secret</b>', 'data:…'],
    ['blob:https://a.test/uuid', 'blob:…'],
    ['about:blank', 'about:blank'],
    ['chrome-error://chromewebdata/', 'chrome-error://chromewebdata/'],
    ['not an address', 'not an address'],
  ])('address %s', (said, kept) => {
    expect(maskAddress(said)).toBe(kept);
  });

  test('takes a bounded time for the worst texts', () => {
    const worst = ['a'.repeat(1e6), 'token-'.repeat(1e5), '1 '.repeat(1e5), 'a://'.repeat(1e5)];
    for (const text of worst) expect(maskText(text).length).toBeLessThanOrEqual(500);
  });
});
