/**
 * Port: asks the server that runs a session's browser for a screenshot. Adapters:
 * jetstream/jetstream-screenshots.ts, screenshots.memory.ts. Nothing is stored: a question that no
 * server answers is lost.
 */
export type Screenshots = {
  /**
   * Asks a server; at most for `ANSWER_MS`.
   * @throws Unavailable('event-log') while this process is cut off
   */
  ask(serverId: string, question: ScreenshotQuestion): Promise<ScreenshotAnswer>;
  /**
   * Answers the questions to a server until it is disposed of; survives reconnects. An answer that
   * fails or is too large reaches the one who asked as `no-picture`.
   */
  serve(serverId: string, answer: AnswerScreenshot): Disposable;
};

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

/** @param bytesMax how large the picture may be */
export type AnswerScreenshot = (
  question: ScreenshotQuestion,
  bytesMax: number,
) => Promise<ScreenshotAnswer>;

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

/** How long a question waits for its answer: longer than a server takes to give up a browser. */
export const ANSWER_MS = 8_000;
/** The largest picture: a message of NATS has 1 MB by default, with its headers. */
export const PICTURE_BYTES_MAX = 900 * 1024;
/** After a failure. */
export const RETRY_AFTER_MS = 5_000;
