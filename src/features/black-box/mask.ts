import { redact } from '#src/browsers/redact.ts';

/** Removes what is secret by nature from what a page told. Pure. */

/** A text is cut to this before it is masked, so that masking takes a bounded time. */
export const RAW_CHARS_MAX = 1_000;
const CHARS_MAX = 500;

/** Names of values that are secrets, as in `access_token=…`, `"password": "…"`, `x-api-key: …`. */
const NAMES =
  'pass(?:word|wd|phrase|code)?|pwd|token|secret|api[-_]?key|auth(?:orization)?|credentials?|' +
  'session[-_]?id|csrf|xsrf|otp|pin|cvc|cvv|iban|ssn|signature';
const VALUE = `"[^"]*"?|'[^']*'?|\\S+`;

const RULES: readonly (readonly [RegExp, string])[] = [
  // To the end of the line: several cookies, or a scheme and its value.
  [/\b((?:set-)?cookie|(?:proxy-)?authorization)(["']?\s*[=:]\s*)[^\n]+/gi, '$1$2…'],
  [
    new RegExp(`\\b([\\w-]{0,32}(?:${NAMES})[\\w-]{0,32}["']?\\s*[=:]\\s*)(?:${VALUE})`, 'gi'),
    '$1…',
  ],
  // Queries and fragments, those of paths alone too.
  [/([a-z][a-z0-9+.-]{0,20}:\/\/[^\s?#'"]*)([?#])[^\s'"]*/gi, '$1$2…'],
  [/(\/[\w./%~+-]*)\?[^\s'"]*=[^\s'"]*/g, '$1?…'],
  // A data URL may be a picture of anything.
  [/\b(data:[\w/+.-]{0,64})[;,][^\s'"]*/gi, '$1,…'],
  // JWTs, keys of well-known services, private keys.
  [/\beyJ[\w-]{4,}(?:\.[\w-]*){0,4}/g, '…'],
  [
    /\b(?:gh[a-z]_|github_pat_|xox[a-z]-|[sp]k_(?:live|test)_|sk-|AKIA|AIza|ya29\.)[\w.-]{8,}/g,
    '…',
  ],
  [/-----BEGIN [A-Z ]{0,40}KEY-----[^]*/g, '…'],
  // Numbers of cards.
  [/\b\d(?:[ -]?\d){13,18}\b/g, '…'],
];
/** Whatever else is long and random: letters and digits without a break. */
const RANDOM = /[A-Za-z0-9_+-]{32,}/g;

/** The text without secrets, cut to 500 characters. */
export function maskText(text: string): string {
  let masked = text.slice(0, RAW_CHARS_MAX);
  for (const [pattern, kept] of RULES) masked = masked.replaceAll(pattern, kept);
  masked = redact(masked);
  masked = masked.replaceAll(RANDOM, (run) => (/\d/.test(run) && /[A-Za-z]/.test(run) ? '…' : run));
  return cut(masked.toWellFormed());
}

/** A URL without query, fragment and user; of `data:` and the like only the scheme. */
export function maskAddress(address: string): string {
  const url = URL.parse(address.slice(0, RAW_CHARS_MAX));
  if (url === null) return maskText(address);
  const { protocol, host, pathname } = url;
  if (url.href === 'about:blank') return url.href;
  if (host === '' && protocol !== 'file:' && protocol !== 'about:') return `${protocol}…`;
  return maskText(`${protocol}//${host}${pathname}`);
}

function cut(text: string): string {
  return text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX - 1).toWellFormed()}…`;
}
