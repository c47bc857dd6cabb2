import { reject, type Rejection } from '#src/errors.ts';

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
    reject('NAVIGATION_FAILED', { url: shown(url), reason: reason.slice(0, 128) }, { message }),
  );
}

export function pageCrashed(url: string): PageFailure {
  return new PageFailure(reject('PAGE_CRASHED', { url: shown(url) }));
}

/** INVALID_REQUEST for a field that only the page could check. */
export function badField(field: string, message: string): PageFailure {
  return new PageFailure(reject('INVALID_REQUEST', { field }, { message: `${field}: ${message}` }));
}
