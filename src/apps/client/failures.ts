import type { ErrorName } from '#src/kernel/errors.ts';

export type { ErrorName } from '#src/kernel/errors.ts';

/** The service refused the request: `error` is one of the names in its table of errors. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly error: ErrorName;
  /** The HTTP status. */
  readonly code: number;
  /** Details, as the table of errors documents for each name. */
  readonly context: Record<string, unknown>;
  /** Time after which a retry may succeed; null: unknown, or a retry does not help. */
  readonly retryAfterMs: number | null;

  constructor(problem: Problem, retryAfterMs: number | null = null) {
    super(`${problem.error}: ${problem.message}`);
    this.error = problem.error;
    this.code = problem.code;
    this.context = problem.context;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A download of the browser is not among the session's files. */
export class DownloadRefused extends Error {
  override readonly name = 'DownloadRefused';
  /** The name that the page suggested. */
  readonly suggestedFilename: string;
  /**
   * `too_large`, `quota`, `name` or `failed`, as the event `session.file-refused` has it; of a
   * download that the service does not know, what the browser says of it.
   */
  readonly reason: string;

  constructor(suggestedFilename: string, reason: string) {
    super(`the download of ${JSON.stringify(suggestedFilename)} was not kept: ${reason}`);
    this.suggestedFilename = suggestedFilename;
    this.reason = reason;
  }
}

/** The body of a refusal. */
export type Problem = {
  error: ErrorName;
  message: string;
  code: number;
  context: Record<string, unknown>;
};

/**
 * No answer of the service arrived: it was unreachable or too slow, or a proxy answered. The
 * request may have taken effect.
 */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** The request's idempotency key, if any: repeat the request with it to be safe. */
  readonly idempotencyKey: string | null;

  constructor(
    message: string,
    options: { cause?: unknown; idempotencyKey?: string | null | undefined } = {},
  ) {
    super(message, { cause: options.cause });
    this.idempotencyKey = options.idempotencyKey ?? null;
  }
}

/** The error in an unsuccessful response. @throws Error if it does not come from the service */
export async function readRefusal(response: Response): Promise<ServiceError> {
  const text = await response.text();
  const problem = parseProblem(text);
  if (problem === null)
    throw new Error(`status ${response.status} without an error of the service`, {
      cause: text.slice(0, 500),
    });
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ServiceError(problem, Number.isFinite(seconds) ? seconds * 1000 : null);
}

function parseProblem(text: string): Problem | null {
  try {
    const { error, message, code, context } = JSON.parse(text) as Partial<Problem>;
    if (typeof error !== 'string' || typeof message !== 'string' || typeof code !== 'number')
      return null;
    return { error, message, code, context: context ?? {} };
  } catch {
    return null;
  }
}
