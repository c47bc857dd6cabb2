import { sleep } from '#src/kernel/async/sleep.ts';
import { CdpRefusal } from '#src/browsers/link/cdp.ts';
import { readObject, textOf } from '#src/kernel/foreign/foreign-json.ts';
import {
  marginsOf,
  type PageAsked,
  type PdfAsked,
  type ScreenshotAsked,
} from './routes/page-call.ts';
import { PDF } from './document-responses.ts';
import {
  DocumentGone,
  untilThere,
  type DocumentFacts,
  type Page,
  type ReadyDocument,
} from './page.ts';
import {
  badField,
  FILE_BYTES_MAX,
  HTML_BYTES_MAX,
  isPdf,
  navigationFailed,
  OTHERS_BYTES_MAX,
  tooLarge,
  tooManyPixels,
} from './page-failure.ts';

/** The result of a call: `bytes` are a picture, a PDF, or HTML in UTF-8. */
export type Captured = DocumentFacts & { bytes: Buffer };

/** Chromium draws no picture with a longer side. */
const SIDE_MAX = 16_384;
/** Of a picture, of the viewport too: 256 MB in the browser, 4 bytes each. */
export const PIXELS_MAX = 64 * 1024 ** 2;
const QUALITY_DEFAULT = 80;
/** Between two tries, of the page or of its picture. */
const TRY_AGAIN_MS = 50;
/** How long a PDF's viewer may change what it shows, as it may blink for ever. */
const RESTS_WITHIN_MS = 5_000;
/** Titles in answers; a page may have any. */
const TITLE_MAX = 1_024;
/** What the egress proxy answers in place of a page: src/features/egress/egress-proxy.ts. */
const REFUSED_BY_RULES = /^The session's egress rules refuse (\S+): (\w+)\.\n$/;
const FORBIDDEN = 403;

/** Inches, as CDP has them. */
const PAPERS = {
  a3: [11.7, 16.54],
  a4: [8.27, 11.7],
  a5: [5.83, 8.27],
  letter: [8.5, 11],
  legal: [8.5, 14],
  tabloid: [11, 17],
} as const;

/** The bytes of a result of the kind. */
export function resultBytesMax(kind: PageAsked['kind']): number {
  return kind === 'content' ? HTML_BYTES_MAX : FILE_BYTES_MAX;
}

/** The longest message of a browser with a result of the kind. */
export function messageBytesMax(kind: PageAsked['kind']): number {
  // Chromium has six bytes, as \u0416, for each character that is no ASCII, and UTF-8 two of them
  // at least. Files are in base64.
  const result = kind === 'content' ? 3 * HTML_BYTES_MAX : Math.ceil((FILE_BYTES_MAX * 4) / 3);
  return OTHERS_BYTES_MAX + result;
}

/**
 * Waits until the page has reached what was asked for, and takes it. Bytes, address, title and
 * status are of one document: if the page goes on to another meanwhile, all begins again, until the
 * signal aborts.
 * @throws PageFailure, ConnectionLost, or the reason of the signal
 */
export async function capturePage(
  page: Page,
  asked: PageAsked,
  signal: AbortSignal,
): Promise<Captured> {
  for (;;) {
    const document = await page.untilReady(asked.body);
    try {
      const { type, ...facts } = await factsOf(document);
      const bytes =
        type === PDF
          ? await takePdf(page, document, facts, { asked, signal })
          : await takeDocument(page, document, asked, signal);
      if (await page.isStill(document)) return { ...facts, bytes };
    } catch (error) {
      // A document that is replaced while it is drawn is refused, too.
      const isGone = error instanceof CdpRefusal && !(await page.isStill(document));
      if (!isGone && !(error instanceof DocumentGone)) throw error;
    }
    await sleep(TRY_AGAIN_MS, signal);
    signal.throwIfAborted();
  }
}

async function takeDocument(
  page: Page,
  document: ReadyDocument,
  asked: PageAsked,
  signal: AbortSignal,
): Promise<Buffer> {
  if (asked.kind === 'content') return htmlOf(document);
  await page.untilPdfsShown();
  if (asked.kind === 'pdf') return pdfOf(page, asked.body);
  return pictureOf(page, document, asked.body, signal);
}

/** Of a document that is a PDF, which Chromium's viewer shows: its bytes, or a picture of that. */
async function takePdf(
  page: Page,
  document: ReadyDocument,
  { url }: DocumentFacts,
  { asked, signal }: { asked: PageAsked; signal: AbortSignal },
): Promise<Buffer> {
  if (asked.kind === 'content') throw isPdf(url, asked.kind);
  if (asked.kind === 'pdf') {
    if (asked.body.page_ranges !== undefined)
      throw badField('page_ranges', 'the address is a PDF, which is answered whole.');
    const bytes = page.pdfOf(url) ?? (url.startsWith('data:') ? await bytesOfData(url) : null);
    // A service worker's, for example; the viewer cannot be printed.
    if (bytes === null) throw isPdf(url, asked.kind);
    if (bytes.length > FILE_BYTES_MAX) throw tooLarge(FILE_BYTES_MAX);
    return bytes;
  }
  if (asked.body.full_page === true)
    throw badField('full_page', 'the address is a PDF, of which a picture shows what fits.');
  await page.untilPdfsShown();
  // It is drawn a moment after it was read, page after page.
  const until = performance.now() + RESTS_WITHIN_MS;
  let picture = await pictureOf(page, document, asked.body, signal);
  for (;;) {
    await sleep(TRY_AGAIN_MS, signal);
    signal.throwIfAborted();
    const next = await pictureOf(page, document, asked.body, signal);
    if (next.equals(picture) || performance.now() >= until) return next;
    picture = next;
  }
}

/** No connection is made for it. */
async function bytesOfData(url: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}

/** @throws PageFailure NAVIGATION_FAILED if it is what the session's egress proxy answers */
async function factsOf({ evaluate }: ReadyDocument): Promise<DocumentFacts & { type: string }> {
  const { url, title, status, type, refusal } = readObject(
    await evaluate(`(() => {
      const isHttp = /^https?:$/.test(location.protocol);
      const [navigation] = performance.getEntriesByType('navigation');
      const status = (isHttp && navigation?.responseStatus) || 0;
      const isText = status === ${FORBIDDEN} && document.contentType === 'text/plain';
      return {
        url: location.href,
        title: document.title.slice(0, ${TITLE_MAX}),
        status,
        type: document.contentType,
        refusal: isText ? (document.body?.textContent ?? '').slice(0, 512) : '',
      };
    })()`),
  );
  const [, , verdict] = REFUSED_BY_RULES.exec(textOf(refusal)) ?? [];
  if (verdict !== undefined) throw navigationFailed(textOf(url), `egress_${verdict}`);
  const code = Number(status);
  return {
    url: textOf(url),
    title: textOf(title).toWellFormed(),
    status: Number.isInteger(code) && code > 0 ? code : null,
    type: textOf(type),
  };
}

/** Too much is measured in the page, as the text in JSON that a client gets: it is not sent. */
async function htmlOf({ evaluate }: ReadyDocument): Promise<Buffer> {
  const html = await evaluate(`(() => {
    const type = document.doctype;
    const root = document.documentElement?.outerHTML ?? '';
    const html = (type === null ? '' : new XMLSerializer().serializeToString(type)) + root;
    if (html.length > ${HTML_BYTES_MAX}) return null;
    const sent = new TextEncoder().encode(JSON.stringify(html));
    return sent.length > ${HTML_BYTES_MAX} ? null : html;
  })()`);
  if (html === null) throw tooLarge(HTML_BYTES_MAX);
  const bytes = Buffer.from(textOf(html));
  if (bytes.length > HTML_BYTES_MAX) throw tooLarge(HTML_BYTES_MAX);
  return bytes;
}

async function pdfOf(page: Page, asked: PdfAsked): Promise<Buffer> {
  const [paperWidth, paperHeight] = PAPERS[asked.format ?? 'a4'];
  try {
    const { data } = await page.send('Page.printToPDF', {
      paperWidth,
      paperHeight,
      ...marginsOf(asked),
      landscape: asked.landscape ?? false,
      printBackground: asked.print_background ?? false,
      scale: asked.scale ?? 1,
      pageRanges: asked.page_ranges ?? '',
    });
    return bytesOf(data);
  } catch (error) {
    // Chromium's own words: `Page range exceeds page count`, `invalid print parameters: …`.
    if (error instanceof CdpRefusal && /page ?range/i.test(error.message))
      throw badField('page_ranges', 'the PDF has no such pages.');
    if (error instanceof CdpRefusal && /print parameters|margin|paper|area/i.test(error.message))
      throw badField('margins_mm', 'the paper has no room left.');
    throw error;
  }
}

type Clip = { x: number; y: number; width: number; height: number };

async function pictureOf(
  page: Page,
  document: ReadyDocument,
  asked: ScreenshotAsked,
  signal: AbortSignal,
): Promise<Buffer> {
  const clip = await clipOf(page, document, asked, signal);
  const scale = asked.viewport?.scale ?? 1;
  if (clip !== null) {
    const [width, height] = [clip.width * scale, clip.height * scale];
    if (Math.max(width, height) > SIDE_MAX) throw tooManyPixels({ max_side: SIDE_MAX });
    if (width * height > PIXELS_MAX) throw tooManyPixels({ max_pixels: PIXELS_MAX });
  }
  // A page behind a window that it has opened is not drawn.
  await page.send('Page.bringToFront');
  const format = asked.format ?? 'png';
  const { data } = await page.send('Page.captureScreenshot', {
    format,
    ...(format === 'png' ? {} : { quality: asked.quality ?? QUALITY_DEFAULT }),
    ...(clip === null ? {} : { clip: { ...clip, scale: 1 }, captureBeyondViewport: true }),
  });
  return bytesOf(data);
}

/** The part of the page that is drawn; null: what its viewport shows. */
async function clipOf(
  page: Page,
  document: ReadyDocument,
  { selector, full_page: isFull = false }: ScreenshotAsked,
  signal: AbortSignal,
): Promise<Clip | null> {
  if (selector !== undefined) {
    // Whole pixels: a part of a pixel would be a line of the page behind.
    const box = `(element) => {
      const box = element.getBoundingClientRect();
      const [x, y] = [Math.floor(box.x + scrollX), Math.floor(box.y + scrollY)];
      const [right, bottom] = [box.right + scrollX, box.bottom + scrollY].map(Math.ceil);
      return right > x && bottom > y ? { x, y, width: right - x, height: bottom - y } : null;
    }`;
    return readClip(await untilThere(document, 'selector', selector, signal, box));
  }
  if (!isFull) return null;
  const { cssContentSize } = await page.send('Page.getLayoutMetrics');
  return readClip(cssContentSize);
}

/** @throws PageFailure if it is no area */
function readClip(value: unknown): Clip {
  const { x, y, width, height } = readObject(value);
  const numbers = [x, y, width, height].map(Number);
  if (!numbers.every(Number.isFinite)) throw new SyntaxError('an area has no size');
  return { x: Number(x), y: Number(y), width: Number(width), height: Number(height) };
}

function bytesOf(data: unknown): Buffer {
  const bytes = Buffer.from(textOf(data), 'base64');
  if (bytes.length > FILE_BYTES_MAX) throw tooLarge(FILE_BYTES_MAX);
  return bytes;
}
