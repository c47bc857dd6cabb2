import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { Browser, Page } from 'puppeteer-core';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { decodeScript, type Decoded } from '#test/support/clients/jpeg.ts';
import { refusal, startPageSite, type PageSite } from '#test/support/clients/page-site.ts';
import { reaches, startRealService, type RealService } from '#test/support/service/real-session.ts';
import { DEV_KEY } from '#test/support/service/service.ts';

/** A page in one call, with real browsers. */

const LONG = `<!doctype html><title>Grün &amp; lang</title>
  <body style="margin:0;background:#00ff00">
  <div id="box" style="width:100px;height:40px;background:#ff0000;margin:10px"></div>
  <div style="height:3000px;background:#0000ff"></div>
  <script>setTimeout(() => document.body.append(
    Object.assign(document.createElement('p'), { id: 'late', textContent: 'after' })), 100)
  </script>`;

let service: RealService;
let site: PageSite;
let client: Client;
let url: string;
/** A page of a browser of this service, which decodes pictures. */
let decoder: { browser: Browser; page: Page };

beforeAll(async () => {
  site = await startPageSite({
    '/': LONG,
    '/hop': '<script>location.href = "/"</script>',
  });
  url = `${site.url}/`;
  service = await startRealService({ POOL_MIN_IDLE: '2', POOL_MAX: '6' });
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
  const { cdp_url: browserWSEndpoint } = await client.sessions.create();
  const browser = await connectPuppeteer({ browserWSEndpoint: browserWSEndpoint ?? '' });
  decoder = { browser, page: await browser.newPage() };
});
afterAll(async () => {
  await decoder?.browser.disconnect();
  await service?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

const decode = (bytes: Uint8Array) =>
  decoder.page.evaluate(decodeScript(bytes)) as Promise<Decoded>;

describe('a screenshot', () => {
  it('has the size of the viewport, and is of the document that the headers name', async () => {
    const viewport = { width: 640, height: 360 };
    const picture = await client.screenshot({ url, viewport });
    const { bytes, sessionId, ...document } = picture;
    expect(document).toEqual({ type: 'image/png', url, title: 'Grün & lang', status: 200 });
    const { middle, ...size } = await decode(bytes);
    expect([size, middle]).toEqual([viewport, '#0000ff']);
    expect(sessionId).toMatch(/^ses_/);
  });

  it('is of the whole page, or of one element with two pixels to one', async () => {
    const [whole, element] = await Promise.all([
      client.screenshot({ url, full_page: true, wait_until: 'domcontentloaded' }),
      client.screenshot({ url, selector: '#box', viewport: { width: 300, height: 200, scale: 2 } }),
    ]);
    const { width, height } = await decode(whole.bytes);
    expect([width, height > 3050 && height < 3200]).toEqual([1280, true]);
    expect(await decode(element.bytes)).toEqual({ width: 200, height: 80, middle: '#ff0000' });
  });
});

test('a PDF has the pages of the document, or those that are asked for', async () => {
  const [all, some] = await Promise.all([
    client.pdf({ url }),
    client.pdf({ url, page_ranges: '2-3', format: 'letter', landscape: true }),
  ]);
  const [text, part] = [all, some].map(({ bytes }) => Buffer.from(bytes).toString('latin1'));
  const pagesOf = (pdf = '') => pdf.match(/\/Type \/Page\b/g)?.length ?? 0;
  expect(text?.slice(0, 5)).toBe('%PDF-');
  expect([pagesOf(text) > 2, pagesOf(part)]).toEqual([true, 2]);
  expect(part).toContain('/MediaBox [0 0 792 612]');
  expect(all).toMatchObject({ type: 'application/pdf', url, status: 200 });
});

describe('content', () => {
  it('is the document after its scripts ran, where its redirects ended', async () => {
    const content = await client.content({ url: `${url}hop`, wait_for: '#late' });
    expect(content).toMatchObject({ url, title: 'Grün & lang', status: 200 });
    expect(content.html).toMatch(/^<!DOCTYPE html>.*<p id="late">after<\/p>/s);
  });
});

test('the session is one minute of usage, and its history has the whole life', async () => {
  const session = { labels: { team: 'web' }, session_name: 'a picture' };
  const { sessionId, status } = await client.screenshot({ url: 'data:text/html,hi', session });
  expect(status).toBeNull();
  const { credits_used } = await reaches(service, sessionId, 'stopped');
  expect(credits_used).toBe(1);
  const { events } = await client.sessions.history(sessionId);
  const steps = events.map(({ type }) => type).filter((type) => type !== 'session.accessed');
  expect(steps.filter((type) => type !== 'session.assigned')).toEqual([
    'session.requested',
    'session.activated',
    'session.stop-requested',
    'session.stopped',
  ]);
  const [requested] = events;
  expect(requested).toMatchObject({ actor: { kind: 'user', via: 'one-call' } });
  const stop = events.find(({ type }) => type === 'session.stop-requested');
  expect(stop).toMatchObject({
    actor: { via: 'one-call' },
    data: { reason: 'user', note: 'one call: done' },
  });
  expect(await client.sessions.get(sessionId)).toMatchObject({
    session_name: 'a picture',
    description: 'one call: screenshot of data:',
    labels: { team: 'web', 'one-call': 'screenshot' },
    credits_reserved: 2,
    ended_reason: 'user',
  });
  const { lines } = await client.organization.usage();
  const line = lines.find(({ session_id }) => session_id === sessionId);
  expect(line).toMatchObject({ minutes: 1, credits_used: 1 });
});

test('an address that does not answer is refused with the reason, and the session ends', async () => {
  const { code, error, context } = await refusal(
    client.content({ url: 'http://nowhere.invalid/' }),
  );
  expect([code, error]).toEqual([422, 'NAVIGATION_FAILED']);
  expect(context['reason']).toBe('net::ERR_NAME_NOT_RESOLVED');
  await reaches(service, String(context['session_id']), 'stopped');
});

test.each<[string, object, string]>([
  ['file:', { url: 'file:///etc/passwd' }, 'url'],
  ['javascript:', { url: 'javascript:alert(1)' }, 'url'],
  ['chrome:', { url: 'chrome://settings' }, 'url'],
  ['no address', { url: 'example.com' }, 'url'],
  ['the quality of a PNG', { url: 'http://a/', quality: 5 }, 'quality'],
  ['a page and an element', { url: 'http://a/', full_page: true, selector: 'p' }, 'selector'],
  [
    'a viewport of more than 64 Mi pixels',
    { url: 'http://a/', viewport: { width: 3840, height: 4320, scale: 3 } },
    'viewport',
  ],
  ['a duration', { url: 'http://a/', session: { duration: '1h' } }, 'session'],
])('%s is refused without a session', async (_, asked, field) => {
  const refused = await refusal(client.screenshot(asked as { url: string }));
  expect([refused.code, refused.error]).toEqual([400, 'INVALID_REQUEST']);
  expect(refused.context).toMatchObject({ field: expect.stringContaining(field) as unknown });
  expect(refused.context).not.toHaveProperty('session_id');
});
