import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { pino } from 'pino';
import { PICTURE_BYTES_MAX, type ScreenshotQuestion } from '#src/kernel/messaging/screenshots.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { takePicture, type PictureOptions } from '#src/browsers/chromium/screenshot.ts';
import { createRoster, type Roster } from '#src/roles/provisioner/pool/roster.ts';
import {
  createScreenshots,
  type ScreenshotsOptions,
} from '#src/features/screenshots/screenshots.ts';
import { aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  openSimulatedBrowsers,
  type OpenedBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';

/** Questions for screenshots, as a server answers them for its simulated browsers. */

type Capture = PictureOptions & { at: number };

let opened: OpenedBrowsers;
let browser: RunningBrowser;
let roster: Roster;
/** What was asked of browsers. */
let captures: Capture[];
beforeAll(async () => {
  opened = await openSimulatedBrowsers();
  browser = await opened.browsers.launch(aSpec({ screen: { width: 1_600, height: 900 } }));
});
afterAll(() => opened?.[Symbol.asyncDispose]());
beforeEach(() => {
  captures = [];
  roster = createRoster(() => undefined);
  roster.adopt(browser, OPTIONS, SESSION);
});

const OPTIONS = { viewport: null, locale: null, timezone: null };
const SESSION = { organizationId: 'acme', id: 'ses_1' };
const take: typeof takePicture = (address, options, signal) => {
  captures.push({ ...options, at: performance.now() });
  return takePicture(address, options, signal);
};

function open(options: Partial<ScreenshotsOptions> = {}, bytesMax = PICTURE_BYTES_MAX) {
  const log = pino({ level: 'silent' });
  const answer = createScreenshots({ served: roster, log, take, ...options });
  const { workloadId } = browser;
  return (asked: Partial<ScreenshotQuestion> = {}) => {
    const who = { organizationId: 'acme', sessionId: 'ses_1', workloadId };
    return answer({ ...who, maxWidth: 320, known: [], ...asked }, bytesMax);
  };
}
const kinds = async (asked: ReturnType<ReturnType<typeof open>>[]) =>
  (await Promise.all(asked)).map(({ kind }) => kind);
const times = (count: number) => Array.from({ length: count }, (_, at) => at);

test('a hundred questions at once are one capture, and so are those within a second', async () => {
  const ask = open();
  const answers = await Promise.all(times(100).map(() => ask()));
  expect(new Set(answers.map((answer) => answer.kind === 'image' && answer.etag)).size).toBe(1);
  expect(await kinds(times(100).map(() => ask()))).toEqual(times(100).map(() => 'image'));
  expect(captures.length).toBe(1);
});

test('a browser is asked at most once a second, whatever the widths', async () => {
  const ask = open();
  for (const _ of times(3)) await Promise.all([320, 640, 330].map((maxWidth) => ask({ maxWidth })));
  expect(captures.length).toBeGreaterThanOrEqual(2);
  for (const [at, { at: begunAt }] of captures.entries())
    if (at > 0) expect(begunAt - (captures[at - 1]?.at ?? 0)).toBeGreaterThanOrEqual(990);
});

test('a width is rounded down: callers who ask for nearly the same share a picture', async () => {
  const ask = open();
  for (const maxWidth of [320, 321, 479]) expect((await ask({ maxWidth })).kind).toBe('image');
  expect(captures.map(({ width }) => width)).toEqual([320]);
});

test('of more widths than can be served soon, the last is answered busy', async () => {
  const ask = open();
  const asked = [160, 320, 480, 640].map((maxWidth) => ask({ maxWidth }));
  expect(await kinds(asked)).toEqual(['image', 'image', 'image', 'busy']);
  expect(captures.map(({ width }) => width)).toEqual([160, 320, 480]);
});

test('a picture that the caller has is not sent again', async () => {
  const ask = open();
  const first = await ask();
  const etag = first.kind === 'image' ? first.etag : '';
  expect(etag).toMatch(/^[\w-]{22}$/);
  expect(await ask({ known: ['other', etag] })).toEqual({ kind: 'unchanged', etag });
  expect((await ask({ known: ['other'] })).kind).toBe('image');
});

describe('the answer is not-here, and the browser is not asked, for', () => {
  test.each<[string, Partial<ScreenshotQuestion>]>([
    ['another organization', { organizationId: 'other' }],
    ['another session', { sessionId: 'ses_2' }],
    ['a browser that is not here', { workloadId: 'wl_none' }],
  ])('%s', async (_, asked) => {
    const ask = open();
    expect((await ask()).kind).toBe('image');
    expect(await ask(asked)).toEqual({ kind: 'not-here' });
    expect(captures.length).toBe(1);
  });

  test('a session that has ended, also within the second of its last picture', async () => {
    const ask = open();
    expect((await ask()).kind).toBe('image');
    const pooled = roster.get(browser.workloadId);
    if (pooled !== null) roster.move(pooled, 'ending');
    expect(await ask()).toEqual({ kind: 'not-here' });
    expect(captures.length).toBe(1);
  });
});

test('a session that ends while its picture is made is not here', async () => {
  const begun = Promise.withResolvers<void>();
  const ask = open({
    withinMs: 200,
    take: (_, __, signal) => {
      begun.resolve();
      return new Promise((___, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    },
  });
  const asked = ask();
  await begun.promise;
  roster.remove(browser.workloadId);
  expect(await asked).toEqual({ kind: 'not-here' });
});

test('a browser without a picture is given up, and then left alone for a while', async () => {
  let asked = 0;
  const outcomes: string[] = [];
  const ask = open({
    screenshotMade: (outcome) => outcomes.push(outcome),
    take: () => {
      asked += 1;
      return Promise.reject(new Error('the browser has no page'));
    },
  });
  for (const _ of times(3))
    expect(await ask()).toEqual({ kind: 'no-picture', retryAfterMs: 5_000 });
  expect([asked, outcomes]).toEqual([1, ['failed']]);
});

test('a picture that is too large is made again, at a lower quality and then smaller', async () => {
  const first = await takePicture(
    browser.cdp,
    { width: 640, quality: 70 },
    AbortSignal.timeout(5_000),
  );
  const ask = open({}, first.length - 1);
  expect((await ask({ maxWidth: 640 })).kind).toBe('image');
  const tried = captures.map(({ width, quality }) => [width, quality]);
  expect(tried).toEqual([
    [640, 70],
    [640, 40],
    [640, 20],
    [320, 70],
  ]);
  const none = open({}, 10);
  expect((await none()).kind).toBe('no-picture');
});

test('of many browsers, some pictures are made at once, and each organization has its share', async () => {
  const others = await Promise.all(times(12).map(() => opened.browsers.launch(aSpec())));
  for (const [at, other] of others.entries())
    roster.adopt(other, OPTIONS, { organizationId: at < 6 ? 'many' : 'few', id: `ses_of_${at}` });
  let most = { many: 0, few: 0 };
  const now = { many: 0, few: 0 };
  const ownerOf = new Map(
    others.map(({ cdp }, at) => [cdp.port, at < 6 ? 'many' : 'few'] as const),
  );
  const ask = open({
    async take(address, options, signal) {
      const owner = ownerOf.get(address.port) ?? 'few';
      now[owner] += 1;
      most = { many: Math.max(most.many, now.many), few: Math.max(most.few, now.few) };
      const bytes = await takePicture(address, options, signal);
      now[owner] -= 1;
      return bytes;
    },
  });
  const asked = others.map(({ workloadId }, at) =>
    ask({
      workloadId,
      organizationId: at < 6 ? 'many' : 'few',
      sessionId: `ses_of_${at}`,
    }),
  );
  expect(new Set(await kinds(asked))).toEqual(new Set(['image']));
  expect(most).toEqual({ many: 4, few: 4 });
});
