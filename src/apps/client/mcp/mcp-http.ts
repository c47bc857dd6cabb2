import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { readMessages } from '../sse.ts';

/** A message of JSON-RPC, as far as it matters here. */
export type Message = { jsonrpc?: string; id?: unknown; method?: string; [field: string]: unknown };

/** An MCP session, as its requests name it. */
export type Link = { id: string; protocol: string | null };

export const SESSION_HEADER = 'mcp-session-id';
const PAUSE_MS = 250;
const PAUSE_MAX_MS = 8_000;
const END_MS = 5_000;
/**
 * The service is away or has no time. A proxy answers 502 and 504 also where the service did what
 * the message asks; the message's Idempotency-Key keeps it from doing it again.
 */
const LATER = [429, 502, 503, 504];
/** Failures of a connection on which nothing was sent. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** What the service answered that is no answer to the message. */
export class Refused extends Error {
  readonly status: number;
  readonly body: unknown;
  constructor(status: number, body: unknown) {
    const said = (body as { message?: unknown } | null)?.message;
    super(typeof said === 'string' ? said : `the service answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

export type McpHttp = {
  /**
   * Posts a message, again while the service is away, for as long as the patience lasts.
   * @throws Refused, or the error of the connection
   */
  post(message: Message, link: Link | null): Promise<Response>;
  /**
   * Opens the session's stream, until the signal aborts.
   * @throws Refused, or the error of the connection
   */
  stream(link: Link, signal: AbortSignal): Promise<Response>;
  /** Ends the session, within 5 s, also once the signal has aborted. @throws if it could not */
  end(link: Link): Promise<void>;
};

/** The service's /mcp. `signal` aborts all but `end` and streams. */
export function createMcpHttp(options: {
  url: string;
  apiKey: string;
  patienceMs: number;
  signal: AbortSignal;
}): McpHttp {
  const { apiKey, patienceMs, signal } = options;
  const address = `${options.url.replace(/\/+$/, '')}/mcp`;

  async function ask(init: RequestInit, link: Link | null): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${apiKey}`);
    if (link !== null) headers.set(SESSION_HEADER, link.id);
    if (link !== null && link.protocol !== null) headers.set('mcp-protocol-version', link.protocol);
    const response = await fetch(address, { signal, ...init, headers });
    if (!response.ok) throw new Refused(response.status, await bodyOf(response));
    return response;
  }

  /** Asks again while the service is away. */
  async function patiently(init: RequestInit, link: Link | null, forMs: number) {
    const until = performance.now() + forMs;
    for (let tries = 0; ; tries += 1)
      try {
        return await ask(init, link);
      } catch (error) {
        const left = until - performance.now();
        if (!isLater(error) || left <= 0) throw error;
        await pause(tries, init.signal ?? signal, left);
      }
  }

  return {
    post(message, link) {
      const accept = 'application/json, text/event-stream';
      const headers = {
        accept,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      };
      const init = { method: 'POST', headers, body: JSON.stringify(message) };
      return patiently(init, link, patienceMs);
    },
    stream: (link, until) => ask({ headers: { accept: 'text/event-stream' }, signal: until }, link),
    async end(link) {
      const init = { method: 'DELETE', signal: AbortSignal.timeout(END_MS) };
      await patiently(init, link, END_MS);
    },
  };
}

/** The messages of an answer, which is JSON, a stream of events, or empty. */
export async function answersOf(response: Response): Promise<object[]> {
  const type = response.headers.get('content-type') ?? '';
  if (type.includes('text/event-stream') && response.body !== null) {
    const answers: object[] = [];
    for await (const { data } of readMessages(response.body))
      if (data !== null) answers.push(JSON.parse(data) as object);
    return answers;
  }
  const text = await response.text();
  return text === '' ? [] : [JSON.parse(text) as object];
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.slice(0, 1_000);
  }
}

function isLater(error: unknown): boolean {
  if (error instanceof Refused) return LATER.includes(error.status);
  const { code = '' } = ((error as Error).cause ?? {}) as { code?: string };
  return NOT_SENT.includes(code);
}

/**
 * Waits before a further try, longer each time, with jitter: clients that failed together do not
 * come back together. @throws if the signal aborts
 */
export async function pause(tries: number, signal: AbortSignal, maxMs = Infinity): Promise<void> {
  const ms = Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2);
  await delay(Math.min(ms, maxMs), undefined, { signal });
}
