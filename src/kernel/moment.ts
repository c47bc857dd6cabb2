/**
 * Moments as callers write them: RFC 3339, years 1000 to 2999, so that times computed from them
 * have a four-digit year too. The same patterns are used for parsing and in the API's document.
 * Digits are spelled out because `\d` matches more than these ten in other languages.
 */

/** All dates of the calendar: 29 February in leap years only. */
const DATE =
  '([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])' +
  '|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))' +
  '|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)';
const MINUTE = '([01][0-9]|2[0-3]):[0-5][0-9]';
const SECOND = '[0-5][0-9](\\.[0-9]{1,9})?';
/** An offset without a colon is not RFC 3339, but strftime's %z writes it. */
const ZONE = '(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])';

/** To the second or finer, in UTC or with an offset. */
export const MOMENT_PATTERN = `^${DATE}T${MINUTE}:${SECOND}${ZONE}$`;
/** To the minute or finer, or a date, which means its start in UTC. */
export const MOMENT_OR_DATE_PATTERN = `^${DATE}(T${MINUTE}(:${SECOND})?${ZONE})?$`;

const moment = new RegExp(MOMENT_PATTERN);
const momentOrDate = new RegExp(MOMENT_OR_DATE_PATTERN);

/** Milliseconds since the epoch, truncated; null if the value is not such a moment. */
export function readMoment(sent: unknown): number | null {
  return typeof sent === 'string' && moment.test(sent) ? toEpoch(sent) : null;
}

/** Like `readMoment`, but also accepts a moment to the minute, and a date. */
export function readMomentOrDate(sent: unknown): number | null {
  return typeof sent === 'string' && momentOrDate.test(sent) ? toEpoch(sent) : null;
}

function toEpoch(text: string): number {
  return Date.parse(text.replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
}
