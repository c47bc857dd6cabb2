import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { PageAsked } from '#src/features/pages/routes/page-call.ts';
import { PageFailure } from '#src/features/pages/page-failure.ts';
import { visitPage } from '#src/features/pages/visit.ts';
import type { RunningBrowser } from '#src/browsers/browsers.ts';
import { aSpec } from '#test/support/browsers/browsers-adapters.ts';
import {
  attachPage,
  openCdp,
  openProcessBrowsers,
} from '#test/support/browsers/browsers.fixture.ts';
import { decodeJpeg } from '#test/support/clients/jpeg.ts';
import { startPageSite, type PageSite } from '#test/support/clients/page-site.ts';
import { eventually } from '#test/support/service/service.ts';

/** What one call makes of pages that ask a person, and of addresses that are no pages. */

/** A page of 600 x 400 points, all red. */
const RED_PDF = pdf('1 0 0 rg 0 0 600 400 re f');

function pdf(drawing: string, catalog = ''): string {
  const objects = [
    `<</Type/Catalog/Pages 2 0 R${catalog}>>`,
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 400]/Contents 4 0 R/Resources<<>>>>',
    `<</Length ${drawing.length}>>stream\n${drawing}\nendstream`,
  ];
  const body = objects.map((object, at) => `${at + 1} 0 obj\n${object}\nendobj\n`).join('');
  return `%PDF-1.4\n${body}trailer<</Root 1 0 R>>\n`;
}

const answer =
  (status: number, headers: Record<string, string>, body = ''): RequestListener =>
  (_, response) =>
    response.writeHead(status, headers).end(body);
const typed = (type: string, body: string) => answer(200, { 'content-type': type }, body);
const titled = (title: string, body: string) => `<title>${title}</title>${body}`;
const asks = (scheme: string) =>
  answer(401, { 'www-authenticate': scheme, 'content-type': 'text/html' }, titled('Secret', 'no'));
const attached = (name: string) =>
  answer(200, {
    'content-type': 'application/zip',
    'content-disposition': `attachment; filename="${name}"`,
  });

let opened: Awaited<ReturnType<typeof openProcessBrowsers>>;
let site: PageSite;
let other: PageSite;
let browser: RunningBrowser;

beforeAll(async () => {
  const protectedPages = { '/secret': asks('Basic realm="x"'), '/image': '<img src="/secret">' };
  other = await startPageSite(protectedPages);
  site = await startPageSite({
    ...protectedPages,
    '/digest': asks('Digest realm="x", nonce="a", qop="auth"'),
    '/frame': titled('Frame', '<iframe src="/secret"></iframe>'),
    '/elsewhere': titled(
      'Elsewhere',
      `<iframe src="${other.url.replace('127.0.0.1', 'localhost')}/image">`,
    ),
    '/style': titled(
      'Style',
      '<link rel="stylesheet" href="/secret"><script src="/secret"></script>',
    ),
    '/worker': titled(
      'Worker',
      `<script>
      new Worker('/worker.js').onmessage = ({ data }) => { document.title = data; done(data); };
      const done = (id) => document.body.append(Object.assign(document.createElement('p'), { id }));
      </script><body>`,
    ),
    '/worker.js': typed(
      'text/javascript',
      "fetch('/secret').then(({status}) => postMessage('s' + status))",
    ),
    '/asks': titled(
      'Asked',
      `<script>
      document.title += [alert(1), confirm('?'), prompt('?'), print()].join();
      </script><iframe srcdoc="<script>parent.alert(1); print()</script>"></iframe>`,
    ),
    '/place': titled(
      'Place',
      `<body><script>
      const done = (id) => document.body.append(Object.assign(document.createElement('p'), { id }));
      navigator.geolocation.getCurrentPosition(() => done('there'), () => done('refused'));
      </script>`,
    ),
    '/invoice': titled(
      'Invoice',
      '<script>onload = () => { print(); frames[0].print(); }</script><iframe></iframe>',
    ),
    '/leaves': titled('Leaves', '<script>location = "/report"</script>'),
    '/mails': titled('Mails', '<script>location = "mailto:a@b.example"</script>'),
    '/hop': answer(302, { location: '/report' }),
    '/report': attached('report.zip'),
    '/bytes': typed('application/octet-stream', 'x'),
    '/204': answer(204, {}),
    '/500': answer(500, { 'content-type': 'application/zip' }, 'x'),
    '/red.pdf': typed('application/pdf', RED_PDF),
    '/asks.pdf': typed(
      'application/pdf',
      pdf(
        '1 0 0 rg 0 0 600 400 re f',
        '/OpenAction<</S/JavaScript/JS(app.alert\\("hi"\\);this.print\\(\\);)>>',
      ),
    ),
    '/untyped': answer(200, {}, RED_PDF),
    '/untyped.html': answer(200, {}, titled('Untyped', '<p>text</p>')),
    '/uploads': titled(
      'Uploads',
      `<script>
      const sent = fetch('/sink', { method: 'POST', body: 'x'.repeat(12e6) });
      sent.then(async (answer) => (document.title = await answer.text()));
      </script>`,
    ),
    '/sink': (request, response) => {
      let bytes = 0;
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('end', () => response.end(`took ${bytes}`));
    },
    '/broken.pdf': typed('application/pdf', 'no PDF'),
    '/embeds':
      '<style>*{margin:0;border:0}</style><iframe src="/red.pdf" width="600" height="400">',
    '/data.json': typed('application/json', '{"a":"json"}'),
    '/data.xml': typed('text/xml', '<list><one>xml</one></list>'),
    '/note.txt': typed('text/plain', 'a note'),
    '/red.svg': typed(
      'image/svg+xml',
      '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9999" height="9999" fill="red"/></svg>',
    ),
  });
  opened = await openProcessBrowsers();
  browser = await opened.browsers.launch(aSpec({ screen: { width: 1280, height: 800 } }));
});
afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

/** One call on a page of its own; a call that waits for a person would have to be ended. */
async function visit(kind: PageAsked['kind'], path: string, more: object = {}, at = browser) {
  const { host, port, path: cdpPath } = at.cdp;
  const url = path.startsWith('/') ? `${site.url}${path}` : path;
  const asked = { kind, body: { url, viewport: { width: 640, height: 400 }, ...more } };
  try {
    return await visitPage(`ws://${host}:${port}${cdpPath}`, {
      asked,
      signal: AbortSignal.timeout(60_000),
    });
  } finally {
    await clear(at);
  }
}

/** Closes all pages for a blank one: a browser has one call alone. */
async function clear({ cdp: address }: RunningBrowser): Promise<void> {
  using cdp = await openCdp(address);
  async function pages(): Promise<string[]> {
    const { targetInfos } = await cdp.send('Target.getTargets');
    const targets = targetInfos as { targetId: string; type: string }[];
    return targets.filter(({ type }) => type === 'page').map(({ targetId }) => targetId);
  }
  const used = await pages();
  const { targetId: blank } = await cdp.send('Target.createTarget', { url: 'about:blank' });
  for (const targetId of used) await cdp.send('Target.closeTarget', { targetId });
  await eventually(async () => (await pages()).every((one) => one === blank), 'they are closed');
}

async function failureOf(kind: PageAsked['kind'], path: string, more: object = {}) {
  const error = await visit(kind, path, more).catch((thrown: unknown) => thrown);
  if (!(error instanceof PageFailure)) throw new Error('the call did not fail', { cause: error });
  const { code, context, message = '' } = error.rejection;
  return { code, message, ...context };
}

/** The colour in the middle of the picture. */
async function middleOf(path: string): Promise<string> {
  const { bytes } = await visit('screenshot', path);
  using cdp = await openCdp(browser.cdp);
  return (await decodeJpeg(cdp, await attachPage(cdp), bytes)).middle;
}

describe('a page that asks a person is answered in the place of one:', () => {
  test.each([
    ['a password of a picture', '/image', '', 200],
    ['a password of the page', '/secret', 'Secret', 401],
    ['a digest of the page', '/digest', 'Secret', 401],
    ['a password of a frame', '/frame', 'Frame', 200],
    ['a password in a frame of another site', '/elsewhere', 'Elsewhere', 200],
    ['a password of a style and a script', '/style', 'Style', 200],
    ['dialogs and printing, of a frame too', '/asks', 'Asked,false,,', 200],
  ])('%s', async (_, path, title, status) => {
    const captured = await visit('screenshot', path);
    expect([captured.status, captured.title]).toEqual([status, title]);
  });

  it('a password in a worker, and where the page is', async () => {
    expect((await visit('content', '/worker', { wait_for: '#s401' })).title).toBe('s401');
    await visit('content', '/place', { wait_for: '#refused' });
  });

  it('its own printing, which does not keep it from becoming a PDF', async () => {
    const headless = await opened.browsers.launch(aSpec({ headless: true }));
    for (const at of [browser, headless]) {
      const { bytes } = await visit('pdf', '/invoice', {}, at);
      expect(bytes.toString('latin1', 0, 5)).toBe('%PDF-');
    }
    await opened.browsers.stop(headless.workloadId);
  });
});

test('what a page uploads is no result, however long it is', async () => {
  const { title } = await visit('content', '/uploads', { wait_until: 'networkidle' });
  expect(title).toBe('took 12000000');
});

describe('an address that is no page is named:', () => {
  const code = 'NAVIGATION_FAILED';
  test.each<[string, string, object]>([
    [
      'a download',
      '/report',
      { reason: 'download', file_name: 'report.zip', content_type: 'application/zip' },
    ],
    ['a script that goes to one', '/leaves', { reason: 'download', file_name: 'report.zip' }],
    [
      'a type that is not shown',
      '/bytes',
      { reason: 'download', content_type: 'application/octet-stream' },
    ],
    ['a download in the address', 'data:application/zip;base64,AAAA', { reason: 'download' }],
    ['an answer without a document', '/204', { reason: 'no_content', status: 204 }],
    ['an error without a page', '/500', { reason: 'net::ERR_INVALID_RESPONSE', status: 500 }],
    ['another program', '/mails', { reason: 'net::ERR_ABORTED' }],
  ])('%s', async (_, path, context) => {
    expect(await failureOf('screenshot', path)).toMatchObject({ code, ...context });
  });

  it('with the way to a download', async () => {
    const { message } = await failureOf('content', '/hop');
    expect(message).toMatch(
      /download.*report\.zip \(application\/zip\).*\/api\/sessions\/\{id\}\/files/,
    );
  });
});

describe('a PDF', () => {
  it('is in the picture, once it can be seen', async () => {
    expect(await middleOf('/red.pdf')).toBe('#ff0000');
    expect(await middleOf(`data:application/pdf;base64,${btoa(RED_PDF)}`)).toBe('#ff0000');
    expect(await middleOf('/asks.pdf')).toBe('#ff0000');
  });

  it('is in the picture of a page that has it in a frame', async () => {
    expect(await middleOf('/embeds')).toBe('#ff0000');
  });

  it('that cannot be read has the picture that a person would see', async () => {
    expect((await visit('screenshot', '/broken.pdf')).bytes.length).toBeGreaterThan(0);
  });

  it('is answered as it is where a PDF is asked for', async () => {
    for (const path of ['/red.pdf', `data:application/pdf;base64,${btoa(RED_PDF)}`])
      expect((await visit('pdf', path)).bytes.toString()).toBe(RED_PDF);
    const { field } = (await failureOf('pdf', '/red.pdf', { page_ranges: '1' })) as {
      field?: string;
    };
    expect(field).toBe('page_ranges');
  });

  it('that has no type is known by its bytes, as the browser knows it', async () => {
    expect((await visit('pdf', '/untyped')).bytes.toString()).toBe(RED_PDF);
    expect(await failureOf('content', '/untyped')).toMatchObject({ reason: 'not_html' });
    const printed = await visit('pdf', '/untyped.html');
    expect([printed.title, printed.bytes.toString('latin1', 0, 5)]).toEqual(['Untyped', '%PDF-']);
  });

  it('has no HTML and no length', async () => {
    const context = { reason: 'not_html', content_type: 'application/pdf' };
    expect(await failureOf('content', '/red.pdf')).toMatchObject(context);
    const refused = await failureOf('screenshot', '/red.pdf', { full_page: true });
    expect(refused).toMatchObject({ code: 'INVALID_REQUEST', field: 'full_page' });
  });
});

describe('a document of another type', () => {
  test.each([
    ['JSON', '/data.json', 'json'],
    ['XML', '/data.xml', 'xml'],
    ['plain text', '/note.txt', 'a note'],
  ])('as %s has its content', async (_, path, text) => {
    const { bytes, status } = await visit('content', path);
    expect([status, bytes.toString()]).toEqual([200, expect.stringContaining(text)]);
  });

  it('as an image is in the picture', async () => {
    expect(await middleOf('/red.svg')).toBe('#ff0000');
  });
});
