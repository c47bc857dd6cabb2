/**
 * Moments as callers write them: RFC 3339, of the years 1000 to 2999, so that what comes of them
 * has four digits for its year again. The patterns are what is read and what is documented; digits
 * are spelled out, for `\d` is more than these ten in other languages.
 */

/** All dates that the calendar has: 29 February in leap years alone. */
const DATE =
  '([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])' +
  '|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))' +
  '|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)';
const MINUTE = '([01][0-9]|2[0-3]):[0-5][0-9]';
const SECOND = '[0-5][0-9](\\.[0-9]{1,9})?';
/** An offset without its colon is no RFC 3339, but what strftime's %z writes. */
const ZONE = '(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])';

/** To the second or finer, in UTC or with an offset from it. */
export const MOMENT_PATTERN = `^${DATE}T${MINUTE}:${SECOND}${ZONE}$`;
/** To the minute or finer, or a date for its begin in UTC. */
export const MOMENT_OR_DATE_PATTERN = `^${DATE}(T${MINUTE}(:${SECOND})?${ZONE})?$`;

const moment = new RegExp(MOMENT_PATTERN);
const momentOrDate = new RegExp(MOMENT_OR_DATE_PATTERN);

/** Milliseconds since the epoch, what is finer cut off; null for what is no such moment. */
export function readMoment(sent: unknown): number | null {
  return typeof sent === 'string' && moment.test(sent) ? toEpoch(sent) : null;
}

/** The same of a moment that may be to the minute, or a date. */
export function readMomentOrDate(sent: unknown): number | null {
  return typeof sent === 'string' && momentOrDate.test(sent) ? toEpoch(sent) : null;
}

function toEpoch(text: string): number {
  return Date.parse(text.replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
}
