import { errors, problemBody, type ErrorName, type Rejection } from '#src/kernel/errors.ts';

/** The errors of W3C WebDriver that this door answers itself, with their HTTP status. */
const STATUS = {
  'invalid argument': 400,
  'invalid session id': 404,
  'unknown command': 404,
  'unknown method': 405,
  'session not created': 500,
  timeout: 500,
  'unknown error': 500,
} as const;

export type WebDriverError = keyof typeof STATUS;

/** An answer in W3C's form. `data` is the error of this service, with its code and context. */
export type WebDriverAnswer = { status: number; body: { value: object } };

/** @param status in place of W3C's, where HTTP has a meaning for clients and proxies */
export function webDriverError(
  error: WebDriverError,
  message: string,
  { status = STATUS[error], data }: { status?: number; data?: object } = {},
): WebDriverAnswer {
  const value = { error, message, stacktrace: '', ...(data === undefined ? {} : { data }) };
  return { status, body: { value } };
}

/** What a refusal of this service means to a client of WebDriver. */
const MEANINGS: Partial<Record<ErrorName, WebDriverError>> = {
  INVALID_REQUEST: 'invalid argument',
  PAYLOAD_TOO_LARGE: 'invalid argument',
  UNSUPPORTED_MEDIA_TYPE: 'invalid argument',
  FILE_NOT_FOUND: 'invalid argument',
  NOT_FOUND: 'invalid session id',
  SESSION_NOT_FOUND: 'invalid session id',
  SESSION_ENDED: 'invalid session id',
  SESSION_NOT_READY: 'invalid session id',
  METHOD_NOT_ALLOWED: 'unknown method',
};
/** These keep their HTTP status: clients ask for a password, proxies and people see a limit. */
const OWN_STATUS: readonly ErrorName[] = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'RATE_LIMIT_EXCEEDED',
  'TRANSFER_LIMIT_EXCEEDED',
  'UNAVAILABLE',
];

/** A rejection in W3C's form. */
export function webDriverRejection(rejection: Rejection): WebDriverAnswer {
  const { code, context } = rejection;
  const data = problemBody(rejection);
  const own = OWN_STATUS.includes(code) ? { status: errors[code].status } : {};
  const isUnknownPath = code === 'NOT_FOUND' && 'path' in context;
  const error = isUnknownPath ? 'unknown command' : (MEANINGS[code] ?? 'unknown error');
  return webDriverError(error, `${code}: ${data.message}`, { ...own, data });
}
