import type {
  ContentAsked,
  PageContent as Content,
  PdfAsked,
  ScreenshotAsked,
} from '#src/features/pages/routes/page-call.ts';
import type { Static } from 'typebox';
import type { CallOptions, Requester } from './requester.ts';

/** A page as a picture; `session` has options of its session, as at create. */
export type PageScreenshot = ScreenshotAsked;
export type PagePdf = PdfAsked;
export type PageToRead = ContentAsked;
export type PageContent = Static<typeof Content>;

/** A file of a page, with the document that it is of. */
export type PageFile = {
  bytes: Uint8Array<ArrayBuffer>;
  /** `image/png`, `application/pdf` and so on. */
  type: string;
  sessionId: string;
  /** Of the document, where its redirects ended; at most 2,048 characters. */
  url: string;
  /** At most 256 characters. */
  title: string;
  /** HTTP status; null: it did not come by HTTP. */
  status: number | null;
};

/**
 * A page in one call, each with a session whose whole life it is. They throw ServiceError with
 * NAVIGATION_FAILED, PAGE_REFUSED, PAGE_TIMEOUT, PAGE_CRASHED or RESULT_TOO_LARGE, whose
 * `context` has the
 * session, and NoAnswer. They are not repeated: a page may do something each time it is opened.
 */
export type Pages = {
  screenshot(asked: PageScreenshot, options?: CallOptions): Promise<PageFile>;
  pdf(asked: PagePdf, options?: CallOptions): Promise<PageFile>;
  content(asked: PageToRead, options?: CallOptions): Promise<PageContent>;
};

/** The service's default for `timeout_ms`, and what it needs beside to stop and to answer. */
const CALL_TIMEOUT_MS = 30_000;
const MORE_MS = 30_000;

function request(kind: string, body: ContentAsked, options?: CallOptions) {
  return {
    method: 'POST' as const,
    path: `/api/${kind}`,
    body,
    timeoutMs: (body.timeout_ms ?? CALL_TIMEOUT_MS) + MORE_MS,
    ...options,
  };
}

export function createPages(requester: Requester): Pages {
  return {
    screenshot: (asked, options) =>
      requester.read(request('screenshot', asked, options), readPageFile),
    pdf: (asked, options) => requester.read(request('pdf', asked, options), readPageFile),
    content: (asked, options) => requester.json(request('content', asked, options)),
  };
}

async function readPageFile(response: Response): Promise<PageFile> {
  const { headers } = response;
  const status = headers.get('x-page-status');
  return {
    bytes: new Uint8Array(await response.arrayBuffer()),
    type: headers.get('content-type') ?? '',
    sessionId: headers.get('x-session-id') ?? '',
    url: headers.get('x-page-url') ?? '',
    title: decodeURIComponent(headers.get('x-page-title') ?? ''),
    status: status === null ? null : Number(status),
  };
}
