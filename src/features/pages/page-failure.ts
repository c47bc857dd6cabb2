import { CdpRefusal, ConnectionLost } from '#src/browsers/link/cdp.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import { PDF, typeOf } from './document-responses.ts';
import type { PausedResponse } from './page-events.ts';

/** Why a call has no result. The rejection's context lacks the session, which its caller adds. */
export class PageFailure extends Error {
  override readonly name = 'PageFailure';
  readonly rejection: Rejection;
  constructor(rejection: Rejection) {
    super(rejection.message ?? rejection.code);
    this.rejection = rejection;
  }
}

/** Bytes of a picture or a PDF, and of a document's HTML as a text in JSON. */
export const FILE_BYTES_MAX = 16 * 1024 ** 2;
export const HTML_BYTES_MAX = 8 * 1024 ** 2;
/** Of what is beside it in a message of the browser, or in an answer: address, title, names. */
export const OTHERS_BYTES_MAX = 1024 ** 2;

/** Of a download, of an answer without a document, and of a page that lost its renderer. */
export const ABORTED = 'net::ERR_ABORTED';

/** Addresses in errors and headers; a data: address may be long. */
const SHOWN_MAX = 2_048;
export const shown = (url: string): string => url.slice(0, SHOWN_MAX).toWellFormed();

/** The result has more bytes than an answer may have. */
export function tooLarge(maxBytes: number): PageFailure {
  return new PageFailure(reject('RESULT_TOO_LARGE', { max_bytes: maxBytes }));
}

/** A picture with more pixels than Chromium draws. */
export function tooManyPixels(limit: { max_side: number } | { max_pixels: number }): PageFailure {
  const message = 'The picture has more pixels than a picture may have.';
  return new PageFailure(reject('RESULT_TOO_LARGE', limit, { message }));
}

/**
 * @param reason `net::ERR_…` of Chromium, `egress_…` with the verdict of the session's rules, or
 * `address_unreachable` if the page itself went to another address
 */
export function navigationFailed(url: string, reason: string): PageFailure {
  const message = `The page could not be opened: ${reason}.`;
  return new PageFailure(
    reject(
      'NAVIGATION_FAILED',
      { url: shown(url), reason: reason.slice(0, REASON_MAX) },
      { message },
    ),
  );
}

const REASON_MAX = 128;
/** Names and types in errors come from the page's server. */
const NAME_MAX = 255;
const nameOf = (text: string): string => text.slice(0, NAME_MAX).toWellFormed();
const NO_CONTENT = new Set([204, 205]);
const FAILED = 400;

/**
 * Chromium has no document of the address.
 * @param facts `fileName`: of the file that it is saved as; null: it is no download
 */
export function notOpened(
  url: string,
  facts: { reason: string; fileName: string | null; answer: PausedResponse | null },
): PageFailure {
  const { reason, fileName, answer } = facts;
  if (fileName !== null) return download(url, fileName, answer === null ? '' : typeOf(answer));
  if (answer === null || reason.startsWith('egress_')) return navigationFailed(url, reason);
  const { status } = answer;
  if (NO_CONTENT.has(status) && reason === ABORTED) {
    const message = `The address has no page: its server answers ${status}, without a document.`;
    return new PageFailure(
      reject('NAVIGATION_FAILED', { url: shown(url), reason: 'no_content', status }, { message }),
    );
  }
  const { rejection } = navigationFailed(url, reason);
  const context = { ...rejection.context, ...(status < FAILED ? {} : { status }) };
  return new PageFailure({ ...rejection, context });
}

function download(url: string, fileName: string, type: string): PageFailure {
  const what = [nameOf(fileName), type === '' ? '' : `(${nameOf(type)})`].join(' ').trim();
  const message =
    `The address is a download, not a page${what === '' ? '' : `: ${what}`}. Get it from the ` +
    'address itself, or open that in a session, whose files (/api/sessions/{id}/files) keep it.';
  const context = {
    url: shown(url),
    reason: 'download',
    ...(fileName === '' ? {} : { file_name: nameOf(fileName) }),
    ...(type === '' ? {} : { content_type: nameOf(type) }),
  };
  return new PageFailure(reject('NAVIGATION_FAILED', context, { message }));
}

/** The document is a PDF: there is no HTML of it, and Chromium prints no such page. */
export function isPdf(url: string, kind: 'content' | 'pdf'): PageFailure {
  const isRead = kind === 'content';
  const message =
    `The address is a document of type ${PDF}, ` +
    (isRead
      ? 'which has no HTML: POST /api/pdf answers it, POST /api/screenshot a picture of it.'
      : 'which the page has not from there: get it from the address itself.');
  const context = { url: shown(url), reason: isRead ? 'not_html' : 'not_kept', content_type: PDF };
  return new PageFailure(reject('NAVIGATION_FAILED', context, { message }));
}

/**
 * The rejection for what a browser said or did; null: the error is of something else. A refusal is
 * the browser's answer about the page, and no sign that it is in trouble.
 */
export function rejectionOfBrowser(error: unknown, url: string): Rejection | null {
  if (error instanceof PageFailure) return error.rejection;
  if (error instanceof CdpRefusal) {
    const reason = error.message.slice(0, NAME_MAX).toWellFormed();
    const message = `The browser refuses this of the page: ${reason}`;
    return reject('PAGE_REFUSED', { url: shown(url), reason }, { message });
  }
  if (!(error instanceof ConnectionLost || error instanceof SyntaxError)) return null;
  const message = 'The browser does not answer, or not as a browser does.';
  return reject('BROWSER_UNREACHABLE', {}, { message });
}

export function pageCrashed(url: string): PageFailure {
  return new PageFailure(reject('PAGE_CRASHED', { url: shown(url) }));
}

/** INVALID_REQUEST for a field that only the page could check. */
export function badField(field: string, message: string): PageFailure {
  return new PageFailure(reject('INVALID_REQUEST', { field }, { message: `${field}: ${message}` }));
}
