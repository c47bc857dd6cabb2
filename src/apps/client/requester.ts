import { NoAnswer, readRefusal, ServiceError } from './failures.ts';

export type RequesterOptions = {
  /** Address of the service, as `http://127.0.0.1:8080`. */
  url: string;
  apiKey: string;
  /** Timeout of one try; default 60 s, longer than a create waits. */
  timeoutMs?: number;
  /** Retries after the first try; default 3. */
  retriesMax?: number;
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch;
};

export type CallOptions = {
  signal?: AbortSignal;
  /** Timeout of one try; default: the client's. */
  timeoutMs?: number;
};

/** Of a call whose answer is a stream, which may take its time. */
export type StreamOptions = Pick<CallOptions, 'signal'>;

export type Request = CallOptions & {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From `/api` on. */
  path: string;
  query?: readonly (readonly [name: string, value: string])[];
  body?: unknown;
  /** Sent as it is, in place of `body`; a stream only once. */
  bytes?: Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  headers?: Record<string, string>;
  /** Sent as Idempotency-Key; a POST is retried only with one. */
  idempotencyKey?: string;
};

export type Requester = {
  /** The response's JSON. @throws ServiceError, NoAnswer, or the reason of the aborted signal */
  json<Answer>(request: Request): Promise<Answer>;
  /** What `read` makes of the response, which may be a 304. @throws as `json` */
  read<Answer>(request: Request, read: (response: Response) => Promise<Answer>): Promise<Answer>;
  /** One try without a timeout, for a streamed response. @throws as `json` */
  open(request: Request): Promise<Response>;
};

const NOT_MODIFIED = 304;
/** A stream as a body is sent whole before the answer is read; fetch asks for this to be said. */
const HALF_DUPLEX = { duplex: 'half' } as const;
const TIMEOUT_MS = 60_000;
const RETRIES_MAX = 3;
const BACKOFF_MS = 250;
const BACKOFF_MAX_MS = 8_000;
/** A longer Retry-After is not waited for; the caller gets the error. */
const RETRY_AFTER_MAX_MS = 30_000;
/** Errors that a later retry may resolve. */
const LATER = [
  'UNAVAILABLE',
  'RATE_LIMIT_EXCEEDED',
  'STREAM_LIMIT_EXCEEDED',
  'TRANSFER_LIMIT_EXCEEDED',
  'NO_SERVERS_AVAILABLE',
];

export function createRequester(options: RequesterOptions): Requester {
  const { apiKey, timeoutMs = TIMEOUT_MS, retriesMax = RETRIES_MAX } = options;
  const fetch = options.fetch ?? globalThis.fetch;
  const base = options.url.replace(/\/+$/, '');

  async function open(request: Request): Promise<Response> {
    const { method, path, query = [], body, bytes, headers, idempotencyKey, signal } = request;
    const search = new URLSearchParams(query.map(([...pair]) => pair)).toString();
    const init: RequestInit & Partial<typeof HALF_DUPLEX> = {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(bytes === undefined ? {} : { body: bytes, ...HALF_DUPLEX }),
      ...(signal === undefined ? {} : { signal }),
    };
    try {
      const response = await fetch(`${base}${path}${search && `?${search}`}`, init);
      if (!response.ok && response.status !== NOT_MODIFIED) throw await readRefusal(response);
      return response;
    } catch (error) {
      throw failureOf(error, request);
    }
  }

  async function attempt<Answer>(
    request: Request,
    read: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const time = AbortSignal.timeout(request.timeoutMs ?? timeoutMs);
    const signal = AbortSignal.any([time, ...(request.signal ? [request.signal] : [])]);
    try {
      return await read(await open({ ...request, signal }));
    } catch (error) {
      throw failureOf(error, request);
    }
  }

  async function read<Answer>(
    request: Request,
    how: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const isSafe = request.method !== 'POST' || request.idempotencyKey !== undefined;
    const mayRepeat = isSafe && !(request.bytes instanceof ReadableStream);
    for (let retry = 0; ; retry += 1) {
      try {
        return await attempt(request, how);
      } catch (error) {
        const afterMs = retry < retriesMax && mayRepeat ? pauseAfter(error, retry) : null;
        if (afterMs === null) throw error;
        await pause(afterMs, request.signal);
      }
    }
  }
  return {
    json: <Answer>(request: Request) => read(request, (answer) => answer.json() as Promise<Answer>),
    read,
    open,
  };
}

/** The parameters that are given, as a request has them. */
export function queryOf(query: object): [name: string, value: string][] {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => [name, String(value)]);
}

/** The error that the caller gets for a failed try. */
function failureOf(error: unknown, { method, path, signal, idempotencyKey }: Request): unknown {
  if (error instanceof ServiceError || error instanceof NoAnswer) return error;
  if (signal?.aborted) return signal.reason;
  const why = error instanceof Error ? error.message : String(error);
  return new NoAnswer(`${method} ${path}: ${why}`, { cause: error, idempotencyKey });
}

/** Time to wait before the next try, in ms; null if a retry does not help. */
export function pauseAfter(error: unknown, retry: number): number | null {
  if (error instanceof NoAnswer) return backoff(retry);
  if (!(error instanceof ServiceError) || !LATER.includes(error.error)) return null;
  const { retryAfterMs } = error;
  if (retryAfterMs !== null && retryAfterMs > RETRY_AFTER_MAX_MS) return null;
  return Math.max(retryAfterMs ?? 0, backoff(retry));
}

/** Exponential up to 8 s, with jitter: clients that failed together do not retry together. */
function backoff(retry: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** retry) * (0.5 + Math.random() / 2);
}

/** Sleeps. @throws the reason of the aborted signal */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
