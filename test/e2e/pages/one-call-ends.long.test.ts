import { oneCallBounds } from '#src/features/pages/one-calls.ts';
import { readProcessLimits } from '#src/kernel/host/process-limits.ts';
import { request as httpRequest } from 'node:http';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { createClient, type Client } from '#src/apps/client/client.ts';
import { refusal, startPageSite, type PageSite } from '#test/support/clients/page-site.ts';
import { openLog } from '#test/support/service/service-log.ts';
import { reaches, startRealService, type RealService } from '#test/support/service/real-session.ts';
import { DEV_KEY, eventually } from '#test/support/service/service.ts';

/** One-call requests that go wrong, with real browsers. */

const MIB = 1024 ** 2;
/** A page whose script writes the character so often. */
const filledWith = (character: string, times: number): string =>
  `<body><script>document.body.textContent = '${character}'.repeat(${times})</script>`;

let service: RealService;
let site: PageSite;
let client: Client;
let url: string;

beforeAll(async () => {
  site = await startPageSite({
    '/': '<title>Here</title>hi',
    '/save': (_, response) =>
      response.writeHead(200, { 'content-disposition': 'attachment; filename=a.txt' }).end('a'),
    '/large': `<script>document.write('<p>' + 'ä'.repeat(5 * 1024 ** 2))</script>`,
    '/controls': filledWith('\\u0001', 2 * MIB),
    '/cyrillic': filledWith('\\u0416', 4 * MIB - 1024),
    '/noise': `<body><canvas></canvas><script>
      const canvas = document.querySelector('canvas');
      [canvas.width, canvas.height] = [3800, 3800];
      const context = canvas.getContext('2d');
      const pixels = context.createImageData(3800, 3800);
      for (let at = 0; at < pixels.data.length; at += 4)
        new DataView(pixels.data.buffer).setUint32(at, (Math.random() * 2 ** 32) | 255);
      context.putImageData(pixels, 0, 0);
    </script>`,
    '/asks': '<title>Asked</title><script>alert(confirm("1"))</script>',
    '/elsewhere': '<meta http-equiv="refresh" content="0;url=http://nowhere.invalid/">',
    '/stays': '<title>Stays</title><script>fetch("/loaded")</script>',
    '/returned': `<p>first</p><script>
      addEventListener('load', () => setTimeout(() => (location.href = '/returns'), 50));
      addEventListener('pageshow', ({ persisted }) => persisted && (document.title = 'Again'));
    </script>`,
    '/returns': `<script>
      addEventListener('load', () => setTimeout(() => history.back(), 50));
    </script>`,
    '/hangs': () => undefined,
    '/restless': (asked, response) => {
      const at = Number(new URL(asked.url ?? '', url).searchParams.get('at') ?? 0);
      const next = `<script>setTimeout(() => (location.href = '?at=${at + 1}'), 30)</script>`;
      const rest = at < 15 ? next : '';
      response.setHeader('content-type', 'text/html');
      response.end(`<title>${at}</title><p id="at">${at}</p>${rest}`);
    },
  });
  url = `${site.url}/`;
  service = await startRealService({ POOL_MIN_IDLE: '3', POOL_MAX: '8' });
  client = createClient({ url: service.apiUrl, apiKey: DEV_KEY });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** The session of the call to that path of the site, once its page is being opened. */
async function sessionOf(path: string, before = 0): Promise<string> {
  await eventually(() => site.asked.filter((one) => one === path).length > before, 'it is opened');
  const { sessions } = await client.sessions.list({ status: 'active' });
  const [session] = sessions;
  if (session === undefined) throw new Error('no session is active');
  return session.id;
}

/** How its history tells the stop. */
async function stopOf(id: string) {
  const { events } = await client.sessions.history(id);
  return events.find(({ type }) => type === 'session.stop-requested')?.data;
}

test.each(['jpeg', 'webp'] as const)('a picture is a %s where it is asked for', async (format) => {
  const { bytes, type } = await client.screenshot({ url, format, quality: 90 });
  expect(type).toBe(`image/${format}`);
  const head = Buffer.from(bytes).toString('latin1', 0, 12);
  expect(head).toMatch(format === 'jpeg' ? /^\xff\xd8\xff/ : /^RIFF....WEBP/s);
});

describe('content', () => {
  it('is that of an error page, with its status', async () => {
    const { title, status } = await client.content({ url: `${url}nothing` });
    expect([title, status]).toEqual(['Not here', 404]);
  });

  it('of a page that asks a person something is not kept waiting', async () => {
    expect(await client.content({ url: `${url}asks` })).toMatchObject({ title: 'Asked' });
  });

  it('may have 8 MiB in the answer, in any script', async () => {
    const { html } = await client.content({ url: `${url}cyrillic` });
    const bytes = Buffer.byteLength(JSON.stringify(html));
    expect([bytes > 8 * MIB - 8_192, bytes <= 8 * MIB]).toEqual([true, true]);
  });

  it('of a few characters that are many in the answer is refused', async () => {
    const { code, error, context } = await refusal(client.content({ url: `${url}controls` }));
    expect([code, error, context['max_bytes']]).toEqual([413, 'RESULT_TOO_LARGE', 8 * MIB]);
    await reaches(service, String(context['session_id']), 'stopped');
  });
});

describe('a call is refused, and its session ends,', () => {
  test.each([
    ['does not answer', 'http://nowhere.invalid/', 'net::ERR_NAME_NOT_RESOLVED'],
    ['goes to one that does not', '/elsewhere', 'address_unreachable'],
    ['is a download', '/save', 'download'],
  ])('where the address %s', async (_, path, reason) => {
    const failed = await refusal(client.content({ url: new URL(path, url).href }));
    expect(failed).toMatchObject({ code: 422, error: 'NAVIGATION_FAILED', context: { reason } });
    await reaches(service, String(failed.context['session_id']), 'stopped');
  });

  it('where the rules of its egress do not let the page be reached', async () => {
    const session = { egress: { deny: ['127.0.0.0/8'] } };
    const [plain, tls] = await Promise.all([
      refusal(client.content({ url, session })),
      refusal(client.screenshot({ url: url.replace('http', 'https'), session })),
    ]);
    const context = { reason: 'egress_denied', url };
    expect(plain).toMatchObject({ error: 'NAVIGATION_FAILED', context });
    expect(tls).toMatchObject({ error: 'NAVIGATION_FAILED', context: { reason: 'egress_denied' } });
  });

  it('where the page is not ready in time', async () => {
    const asked = { url, wait_for: '#never', timeout_ms: 3_000 };
    const { error, code, context } = await refusal(client.content(asked));
    expect([code, error, context['timeout_ms']]).toEqual([504, 'PAGE_TIMEOUT', 3_000]);
    const { events } = await client.sessions.history(String(context['session_id']));
    const stop = events.find(({ type }) => type === 'session.stop-requested');
    expect(stop?.data).toMatchObject({ reason: 'user', note: 'one call: PAGE_TIMEOUT' });
  });

  it('where the document or the picture is too long', async () => {
    const [html, picture] = await Promise.all([
      refusal(client.content({ url: `${url}large` })),
      refusal(
        client.screenshot({ url: 'data:text/html,<p style="height:17000px">', full_page: true }),
      ),
    ]);
    expect(html).toMatchObject({
      ...{ code: 413, error: 'RESULT_TOO_LARGE' },
      context: { max_bytes: 8 * 1024 ** 2 },
    });
    expect(picture).toMatchObject({ error: 'RESULT_TOO_LARGE', context: { max_side: 16_384 } });
  });

  it('where the picture has too many bytes', async () => {
    const viewport = { width: 3_800, height: 3_800 };
    const failed = await refusal(client.screenshot({ url: `${url}noise`, viewport }));
    const context = { max_bytes: 16 * 1024 ** 2 };
    expect(failed).toMatchObject({ error: 'RESULT_TOO_LARGE', context });
    await reaches(service, String(failed.context['session_id']), 'stopped');
  });

  it('where what is no selector and what are no pages is asked for', async () => {
    const asked = [
      refusal(client.content({ url, wait_for: '>>' })),
      refusal(client.screenshot({ url, selector: '>>' })),
      refusal(client.pdf({ url, page_ranges: '99' })),
    ];
    const fields = (await Promise.all(asked)).map(({ code, context }) => [code, context['field']]);
    expect(fields).toEqual([
      [400, 'wait_for'],
      [400, 'selector'],
      [400, 'page_ranges'],
    ]);
  });
});

describe('a page that goes on', () => {
  it('is taken with the address, the title and the text of one document', async () => {
    const asked = { url: `${url}restless`, wait_for: '#at' };
    const { title, html, url: address } = await client.content(asked);
    expect(html).toContain(`<p id="at">${title}</p>`);
    expect(new URL(address).searchParams.get('at') ?? '0').toBe(title);
  });

  it('is taken where it came back to a document that the browser had kept', async () => {
    const {
      title,
      html,
      url: address,
    } = await client.content({
      ...{ url: `${url}returned`, delay_ms: 2_000 },
    });
    expect([title, address, html.includes('first')]).toEqual(['Again', `${url}returned`, true]);
  });

  it('is taken where it stays, if it is asked to rest there', async () => {
    const picture = await client.screenshot({ url: `${url}restless`, delay_ms: 300 });
    expect([picture.title, picture.url]).toEqual(['15', `${url}restless?at=15`]);
  });
});

describe('the session of a call ends', () => {
  it('when its client leaves', async () => {
    const leaving = new AbortController();
    const asked = { url: `${url}hangs` };
    const call = client.content(asked, { signal: leaving.signal }).catch(() => 'left');
    const id = await sessionOf('/hangs');
    leaving.abort();
    expect(await call).toBe('left');
    await reaches(service, id, 'stopped');
    expect(await stopOf(id)).toMatchObject({ note: 'one call: the client left' });
  });

  it('when its page crashes, and the error says so', async () => {
    const call = refusal(client.content({ url: `${url}stays`, wait_for: '#never' }));
    const id = await sessionOf('/stays');
    await eventually(() => site.asked.includes('/loaded'), 'the page is there');
    const { cdp_url } = await client.sessions.access(id);
    const browser = await connectPuppeteer({ browserWSEndpoint: cdp_url ?? '' });
    const target = browser.targets().find((one) => one.url().endsWith('/stays'));
    const cdp = await target?.createCDPSession();
    cdp?.send('Page.crash').catch(() => undefined);
    const failed = await call;
    expect([failed.code, failed.error]).toEqual([502, 'PAGE_CRASHED']);
    await reaches(service, id, 'stopped');
    await browser.disconnect();
  });

  it('when the renderer dies while its page is awaited, and the error says so', async () => {
    const before = site.asked.filter((path) => path === '/hangs').length;
    const call = refusal(client.content({ url: `${url}hangs`, timeout_ms: 60_000 }));
    const id = await sessionOf('/hangs', before);
    const { cdp_url } = await client.sessions.access(id);
    const browser = await connectPuppeteer({ browserWSEndpoint: cdp_url ?? '' });
    const cdp = await browser.target().createCDPSession();
    const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
    const renderers = processInfo.filter(({ type }) => type === 'renderer');
    expect(renderers.length).toBeGreaterThan(0);
    for (const { id: pid } of renderers) process.kill(pid, 'SIGKILL');
    const failed = await call;
    expect([failed.code, failed.error]).toEqual([502, 'PAGE_CRASHED']);
    await reaches(service, id, 'stopped');
    await browser.disconnect();
  });

  it('when somebody stops it, and the error says so', async () => {
    const before = site.asked.filter((path) => path === '/hangs').length;
    const call = refusal(client.content({ url: `${url}hangs` }));
    const id = await sessionOf('/hangs', before);
    await client.sessions.stop(id);
    const { code, error, context } = await call;
    expect([code, error, context['ended_reason']]).toEqual([410, 'SESSION_ENDED', 'user']);
  });

  it('before its answer is read', async () => {
    const body = JSON.stringify({ url, format: 'png' });
    const headers = { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' };
    const asked = httpRequest(`${service.apiUrl}/api/screenshot`, { method: 'POST', headers });
    asked.end(body);
    const id = await new Promise<string>((resolve) =>
      // Nothing of the body is read.
      asked.on('response', (answer) => resolve(String(answer.headers['x-session-id']))),
    );
    const { status } = await client.sessions.get(id);
    expect(['stopping', 'stopped']).toContain(status);
    asked.destroy();
  });

  it('when the service gets a SIGTERM, and the client is answered before that', async () => {
    const before = site.asked.filter((path) => path === '/hangs').length;
    const call = refusal(client.content({ url: `${url}hangs` }));
    const id = await sessionOf('/hangs', before);
    await service.end('SIGTERM');
    const { code, error, context } = await call;
    expect([code, error, context['part']]).toEqual([503, 'UNAVAILABLE', 'one-calls']);
    await service.startAgain();
    await reaches(service, id, 'stopped');
    expect(await stopOf(id)).toMatchObject({ note: 'one call: the API process stopped' });
  });

  it('by itself when the service is killed', async () => {
    const before = site.asked.filter((path) => path === '/hangs').length;
    const call = client.content({ url: `${url}hangs` }).catch(() => 'no answer');
    const id = await sessionOf('/hangs', before);
    await service.end('SIGKILL');
    expect(await call).toBe('no answer');
    await service.startAgain();
    const { ended_reason } = await eventually(async () => {
      const session = await client.sessions.get(id);
      return ['stopped', 'failed'].includes(session.status) && session;
    }, 'it has ended');
    expect(['idle', 'expired', 'server_lost', 'browser_crashed']).toContain(ended_reason);
  });
});

test('of an organization a third of the calls are under way, and a viewer makes none', async () => {
  const limit = Math.floor(oneCallBounds(readProcessLimits()).calls / 3);
  await using log = await openLog(service);
  const { connectApi } = await import('#test/support/clients/api-client.ts');
  const api = await connectApi(service.apiUrl);
  await log.register('many', 'max', 1_000);
  const many = api.as(await log.issueKey('many', 'member', api));
  const viewer = api.as(await log.issueKey('many', 'viewer', api));
  const body = { url: `${url}hangs`, timeout_ms: 15_000 };
  const ask = () => many.send('POST', '/api/content', { body });
  const calls = Array.from({ length: limit + 1 }, ask);
  const answers = await Promise.all(calls);
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused.map((answer) => answer.body)).toMatchObject([
    { error: 'ONE_CALL_LIMIT_EXCEEDED', context: { limit } },
  ]);
  expect(answers.filter(({ status }) => status === 504).length).toBe(limit);
  expect((await viewer.send('POST', '/api/content', { body })).status).toBe(403);
  await eventually(
    async () => (await many.get('/api/sessions')).body.sessions.every(isOver),
    'all have ended',
  );
});

function isOver({ status }: { status: string }): boolean {
  return status === 'stopped' || status === 'failed';
}
