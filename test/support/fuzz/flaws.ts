import { errors, type ErrorName } from '#src/kernel/errors.ts';
import type { Route } from './route.ts';
import type { Answered } from './sender.ts';

/** Errors of a status from 500 on that are documented answers to a request. */
const SPECIFIED: readonly string[] = [
  ...['NO_SERVERS_AVAILABLE', 'UNAVAILABLE', 'DEBUGGER_PORTS_OFF', 'BROWSER_UNREACHABLE'],
  ...['PAGE_CRASHED', 'PAGE_TIMEOUT', 'PROFILE_NOT_SAVED', 'EGRESS_UNAVAILABLE'],
];
/** Of paths and bytes, not of an operation. */
const OF_ANY = [400, 401, 404, 405, 413, 415, 429];
/** W3C's errors with a status of 500. */
const OF_WEBDRIVER = [
  ...['session not created', 'timeout', 'unknown error', 'javascript error', 'script timeout'],
  ...['unable to capture screen', 'unable to set cookie', 'move target out of bounds'],
  ...['unsupported operation', 'invalid cookie domain'],
];

type Body = { error?: string; code?: number; message?: string; value?: { error?: string } };

/**
 * What is wrong with an answer: an unspecified 5xx, an error without the specified body, a status
 * that the document lacks, or no rate limit told.
 * @param isAsked whether path and method are those of the route
 */
export function flawOf(answer: Answered, route: Route, isAsked: boolean): string | null {
  if (answer === null) return null;
  const { status, head, body } = answer;
  const told = `${status} ${body.slice(0, 300)}`;
  if (/^x-injected/im.test(head)) return `an injected header: ${head}`;
  if (!/^x-ratelimit-limit: \d+$/im.test(head)) return `no rate limit told: ${head}`;
  const { documented } = route;
  if (isAsked && documented !== null && !documented.has(status) && !OF_ANY.includes(status))
    return `not documented: ${told}`;
  if (status < 400) return null;
  if (body === '' && /^content-length: [1-9]/im.test(head)) return null; // the answer to HEAD
  if (body === '') return `no body: ${head}`;
  let error: Body;
  try {
    error = JSON.parse(body) as Body;
  } catch {
    return told;
  }
  if (isOfProtocol(error)) return flawOfProtocol(error, status) ? told : null;
  const known = errors[error.error as ErrorName] as { status: number } | undefined;
  if (known?.status !== status || error.code !== status) return told;
  return status >= 500 && !SPECIFIED.includes(error.error ?? '') ? told : null;
}

/** An answer of WebDriver or of MCP. */
function isOfProtocol(error: object): boolean {
  return 'value' in error || 'jsonrpc' in error;
}

function flawOfProtocol({ value, message }: Body, status: number): boolean {
  if (status < 500) return false;
  const text = JSON.stringify(value ?? message);
  return text.includes('INTERNAL') || !OF_WEBDRIVER.includes(value?.error ?? '');
}
