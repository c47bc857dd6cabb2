import type { ErrorName } from '#src/errors.ts';

export type { ErrorName } from '#src/errors.ts';

/** The service has refused: `error` is one of the names of its table of errors. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly error: ErrorName;
  /** The HTTP status. */
  readonly code: number;
  /** Details of what was refused, as the table says for each name. */
  readonly context: Record<string, unknown>;
  /** When a retry may help; null: it will not, or nobody knows. */
  readonly retryAfterMs: number | null;

  constructor(problem: Problem, retryAfterMs: number | null = null) {
    super(`${problem.error}: ${problem.message}`);
    this.error = problem.error;
    this.code = problem.code;
    this.context = problem.context;
    this.retryAfterMs = retryAfterMs;
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
 * No answer came, or none of the service's: it could not be reached, took too long, or something
 * in between answered. What was asked may have been done.
 */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** The request's key, where it had one: the same request with it is known for a repeat. */
  readonly idempotencyKey: string | null;

  constructor(
    message: string,
    options: { cause?: unknown; idempotencyKey?: string | null | undefined } = {},
  ) {
    super(message, { cause: options.cause });
    this.idempotencyKey = options.idempotencyKey ?? null;
  }
}

/** The refusal in an answer that is not a success. @throws NoAnswer where the service gave none */
export async function readRefusal(response: Response): Promise<ServiceError> {
  const text = await response.text();
  const problem = parseProblem(text);
  if (problem === null)
    throw new NoAnswer(`${response.status} from something that is not the service`, {
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
