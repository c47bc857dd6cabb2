/** What a server is asked for a picture of a session's page, and what it answers. */
export type ScreenshotQuestion = {
  organizationId: string;
  sessionId: string;
  /** The session's browser, as its state names it. */
  workloadId: string;
  /** The picture is no wider, in pixels; also not wider than the page. */
  maxWidth: number;
  /** The etags that the caller has; the same picture is not sent again. */
  known: readonly string[];
};

export type Screenshot = {
  bytes: Uint8Array;
  /** Names these bytes: the same picture has the same one. [A-Za-z0-9_-] */
  etag: string;
};

export type ScreenshotAnswer =
  | ({ kind: 'image' } & Screenshot)
  /** The picture is one that the caller has. */
  | { kind: 'unchanged'; etag: string }
  /** The session's browser is not, or no longer, on this server. */
  | { kind: 'not-here' }
  /** The browser shows no page, or does not answer in time. */
  | { kind: 'no-picture'; retryAfterMs: number }
  /** The server makes as many screenshots as it may. */
  | { kind: 'busy'; retryAfterMs: number }
  /** The server does not answer. */
  | { kind: 'no-server' };

/** The largest picture: a message of NATS has 1 MB by default, with its headers. */
export const PICTURE_BYTES_MAX = 900 * 1024;
/** After a failure. */
export const RETRY_AFTER_MS = 5_000;
