/**
 * The closed table of error names: HTTP status and default sentence. Nothing else answers
 * with an error. `test/unit/domain/errors.test.ts` holds it equal to the table in
 * src/roles/api/README.md.
 */
export const errors = {
  INVALID_REQUEST: { status: 400, message: 'The request is not valid.' },
  INVALID_EXTENSION: { status: 400, message: 'This is not a browser extension.' },
  UNKNOWN_EXTENSION: { status: 400, message: 'The organization has no such extension.' },
  INVALID_DURATION: {
    status: 400,
    message: 'Duration must be between 1 minute and 24 hours, written like 30m, 1h or 1h30m.',
  },
  INVALID_FILE_NAME: { status: 400, message: 'A file cannot have this name.' },
  FILE_INCOMPLETE: { status: 400, message: 'The file has not arrived whole; nothing was stored.' },
  UNAUTHORIZED: { status: 401, message: 'A valid API key or token is required.' },
  INSUFFICIENT_CREDITS: { status: 402, message: 'The organization has not enough credits.' },
  FORBIDDEN: { status: 403, message: 'Your role does not allow this.' },
  NOT_FOUND: { status: 404, message: 'There is nothing at this path.' },
  SESSION_NOT_FOUND: { status: 404, message: 'There is no session with this id.' },
  HANDOFF_NOT_FOUND: { status: 404, message: 'The session has no hand-off with this id.' },
  SHARE_NOT_FOUND: { status: 404, message: 'The session has no live share with this id.' },
  RECORDING_NOT_FOUND: {
    status: 404,
    message: 'The session was not recorded, or its recording was removed.',
  },
  THUMBNAIL_NOT_FOUND: {
    status: 404,
    message:
      'There is no picture of the session: it has not ended, opened no page, wants no black box, ' +
      'or the picture was removed.',
  },
  FILE_NOT_FOUND: { status: 404, message: 'The session has no file of this name.' },
  EXTENSION_NOT_FOUND: { status: 404, message: 'There is no extension with this id.' },
  PROFILE_NOT_FOUND: { status: 404, message: 'There is no profile with this id.' },
  PROFILE_VERSION_NOT_FOUND: {
    status: 404,
    message: 'The profile has no such version, or keeps it no more.',
  },
  WEBHOOK_NOT_FOUND: { status: 404, message: 'There is no webhook with this id.' },
  DELIVERY_NOT_FOUND: {
    status: 404,
    message: 'The webhook has no such delivery, or keeps it no more.',
  },
  KEY_NOT_FOUND: { status: 404, message: 'There is no live API key with this id.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'This path does not take this method.' },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    message: 'This Idempotency-Key came before with another request.',
  },
  SESSION_NOT_READY: { status: 409, message: 'The session has no browser yet.' },
  SESSION_NOT_ACTIVE: { status: 409, message: 'The session is ending or has ended.' },
  HANDOFF_CONFLICT: { status: 409, message: 'The hand-off is not in a state for this.' },
  PROFILE_IN_USE: {
    status: 409,
    message: 'Another session is the one that saves this profile.',
  },
  PROFILE_READ_ONLY: {
    status: 409,
    message: 'The session was created without a profile that it saves.',
  },
  PROFILE_SAVE_UNDER_WAY: {
    status: 409,
    message: 'The session’s profile is being saved for another request.',
  },
  SESSION_ENDED: { status: 410, message: 'The session has ended.' },
  SHARE_ENDED: { status: 410, message: 'This address has expired or was taken back.' },
  PAYLOAD_TOO_LARGE: { status: 413, message: 'The request body is too large.' },
  FILE_TOO_LARGE: { status: 413, message: 'The file is larger than a file may be.' },
  FILES_QUOTA_EXCEEDED: {
    status: 413,
    message: 'The session’s files are as many or as large as they may be.',
  },
  RESULT_TOO_LARGE: { status: 413, message: 'The page’s result has more bytes than it may.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'The request body must be application/json.' },
  RANGE_NOT_SATISFIABLE: { status: 416, message: 'The file has no such bytes.' },
  NAVIGATION_FAILED: { status: 422, message: 'The page could not be opened.' },
  PAGE_REFUSED: { status: 422, message: 'The browser refuses what was asked of the page.' },
  RATE_LIMIT_EXCEEDED: { status: 429, message: 'Too many requests in this minute.' },
  SESSION_LIMIT_EXCEEDED: {
    status: 429,
    message: "The organization's limit of concurrent sessions is reached.",
  },
  SHARE_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The session has as many live shares as it may.',
  },
  DEBUGGER_PORT_LIMIT_EXCEEDED: {
    status: 429,
    message: 'As many sessions have ports of their own as may.',
  },
  EXTENSION_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many extensions as it may.',
  },
  WEBHOOK_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many webhooks as it may.',
  },
  PROFILE_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many profiles as it may.',
  },
  STORAGE_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has stored as many bytes as it may.',
  },
  STREAM_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many event streams open as it may.',
  },
  MCP_SESSION_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many MCP sessions as it may.',
  },
  TRANSFER_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many transfers under way as it may.',
  },
  ONE_CALL_LIMIT_EXCEEDED: {
    status: 429,
    message: 'The organization has as many one-call requests under way as it may.',
  },
  INTERNAL: { status: 500, message: 'Something went wrong on our side.' },
  DEBUGGER_PORTS_OFF: {
    status: 501,
    message: 'The operator of this service gives sessions no ports of their own.',
  },
  BROWSER_UNREACHABLE: { status: 502, message: 'The browser does not answer.' },
  PAGE_CRASHED: { status: 502, message: 'The page or its browser crashed.' },
  NO_SERVERS_AVAILABLE: { status: 503, message: 'No browser servers are available.' },
  EGRESS_UNAVAILABLE: {
    status: 503,
    message: 'No server can hold a browser to egress rules now.',
  },
  PROFILE_NOT_SAVED: {
    status: 503,
    message: 'The profile could not be saved; its last version is unchanged.',
  },
  UNAVAILABLE: { status: 503, message: 'A part of the service is not reachable; try again.' },
  PAGE_TIMEOUT: { status: 504, message: 'The page was not ready in time.' },
} as const;

export type ErrorName = keyof typeof errors;

/** A rejected command or request: a value, not an exception. */
export type Rejection = {
  code: ErrorName;
  /** Details of the failing input or resource; becomes `context` of the error body. */
  context: Record<string, unknown>;
  /** Replaces the table's sentence if there is more to say. */
  message?: string;
  /** Seconds until a retry may help; becomes Retry-After. */
  retryAfterSeconds?: number;
};

/** A rejection with its context. */
export function reject(
  code: ErrorName,
  context: Record<string, unknown> = {},
  more: Pick<Rejection, 'message' | 'retryAfterSeconds'> = {},
): Rejection {
  return { code, context, ...more };
}

export function isRejection(value: object): value is Rejection {
  return 'code' in value && 'context' in value;
}

/** The body of every response that is not a success, in every part of the service. */
export function problemBody({ code, message, context }: Rejection) {
  const { status, message: sentence } = errors[code];
  return { error: code, message: message ?? sentence, code: status, context };
}

/**
 * A dependency of this service does not answer: the event store, its archive, the read model, the
 * object store, or the JWT keys.
 */
export class Unavailable extends Error {
  override readonly name: string = 'Unavailable';
  readonly part: 'event-log' | 'archive' | 'read-model' | 'object-store' | 'key-set';
  constructor(part: Unavailable['part'], cause?: unknown) {
    super(`the ${part} does not answer`, { cause });
    this.part = part;
  }
}

/**
 * A newer version of this service wrote an event that this process cannot read yet. It decides
 * nothing about what the event belongs to; a newer process does.
 */
export class WrittenByNewer extends Unavailable {
  constructor(cause: unknown) {
    super('event-log', cause);
    this.message = 'a newer version of this service wrote an event that this process cannot read';
  }
}

/**
 * A file of the archive is missing, or is not what was sealed. Nothing of it is answered until an
 * operator has put it back.
 */
export class ArchiveDamaged extends Unavailable {
  /** The name of the file. */
  readonly file: string;
  constructor(file: string, message: string, cause?: unknown) {
    super('archive', cause);
    this.message = message;
    this.file = file;
  }
}

/** Whether a part does not answer: the same call may succeed later, and others fail now, too. */
export function isOutage(error: unknown): error is Unavailable {
  if (error instanceof WrittenByNewer || error instanceof ArchiveDamaged) return false;
  return error instanceof Unavailable;
}
