import { request as plainRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import {
  flawOf,
  reachableAddresses,
  type AddressRules,
  type Reachable,
} from '#src/features/webhooks/addresses.ts';
import type { Outcome } from '#src/features/webhooks/progress.ts';
import { readRetryAfter } from '#src/features/webhooks/pauses.ts';

/** What an attempt came to. `status` null: there was no answer. */
export type SendResult = {
  outcome: Outcome;
  status: number | null;
  reason: string | null;
  /** The beginning of the answer. */
  excerpt: string | null;
  retryAfterMs: number | null;
};

export type Outgoing = { url: string; body: string; headers: Readonly<Record<string, string>> };

export type SendOptions = {
  rules: AddressRules;
  /** Of a whole attempt: name, connection, answer. */
  timeoutMs: number;
  /** ms since the epoch. */
  now: () => number;
  signal: AbortSignal;
};

/** Sends one delivery. Never rejects, unless the signal aborts. */
export type Send = (outgoing: Outgoing, options: SendOptions) => Promise<SendResult>;

/** Bytes of an answer that are read; the rest is not waited for. */
const EXCERPT_BYTES = 1_024;
const GONE = 410;

/**
 * Sends over HTTP or HTTPS. Redirects are not followed: the organization has named its URL, and
 * where another one leads is not checked. Each attempt has a connection of its own, so that the
 * address is checked each time.
 */
export async function sendOverHttp(outgoing: Outgoing, options: SendOptions): Promise<SendResult> {
  const { rules, timeoutMs, signal } = options;
  const flaw = flawOf(outgoing.url, rules);
  if (flaw === 'inside' || flaw === 'own') return failure(words[flaw]);
  if (flaw !== null) return failure('the URL is not allowed here');
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await attempt(outgoing, { ...options, signal: AbortSignal.any([signal, timeout]) });
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return failure(`no answer within ${timeoutMs / 1_000} s`);
    return failure(reasonOf(error));
  }
}

async function attempt(
  { url, body, headers }: Outgoing,
  { rules, signal, now }: SendOptions,
): Promise<SendResult> {
  const target = new URL(url);
  const ask = target.protocol === 'https:' ? tlsRequest : plainRequest;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request: ClientRequest = ask(target, {
    method: 'POST',
    agent: false,
    lookup: checkedLookup(rules),
    signal,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'browser-session-service',
    },
  });
  request.on('response', resolve);
  // After the answer has begun, too: a connection that breaks then is no other result.
  request.on('error', reject);
  // After `101 Switching Protocols` neither of both comes.
  request.on('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
  request.end(body);
  try {
    const answer = await promise;
    const status = answer.statusCode ?? 0;
    return {
      ...resultOf(status),
      status,
      excerpt: await excerptOf(answer),
      retryAfterMs: readRetryAfter(answer.headers['retry-after'], now()),
    };
  } finally {
    request.destroy();
  }
}

/** What an answer with this status means. */
export function resultOf(status: number): Pick<SendResult, 'outcome' | 'reason'> {
  if (status >= 200 && status < 300) return { outcome: 'delivered', reason: null };
  if (status === GONE) return { outcome: 'gone', reason: 'answered 410 Gone' };
  const isRedirect = status >= 300 && status < 400;
  const reason = isRedirect
    ? `answered ${status}: redirects are not followed`
    : `answered ${status}`;
  return { outcome: 'failed', reason };
}

/** The beginning of the body as far as it comes; an answer that hangs has its status. */
async function excerptOf(answer: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= EXCERPT_BYTES) break;
    }
  } catch {
    // The status has come: it is what counts.
  }
  const text = Buffer.concat(chunks).subarray(0, EXCERPT_BYTES).toString('utf8');
  return text === '' ? null : text.replaceAll('\u0000', '');
}

/** Connects to the addresses that were checked, and to no others: a name may change meanwhile. */
function checkedLookup(rules: AddressRules): LookupFunction {
  return (hostname, { all }, callback) => {
    const connect = ({ addresses, flaw }: Reachable) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const [first] = found;
      if (first === undefined) {
        const why = flaw === null ? 'the name has no address' : words[flaw];
        callback(Object.assign(new Error(why), { code: 'ENOTFOUND' }), '');
      } else if (all === true) callback(null, found);
      else callback(null, first.address, first.family);
    };
    const fail = (error: Error) => callback(error, '');
    void reachableAddresses(hostname, rules).then(connect, fail);
  };
}

const words = {
  inside: 'the address leads inside',
  own: 'the address is one of this service itself',
} as const;

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the connection timed out',
};

/** Without the URL, which may hold credentials. */
function reasonOf(error: unknown): string {
  const { code = '', message } = error as { code?: string; message: string };
  if (code === 'ENOTFOUND') return message;
  return causes[code] ?? (code === '' ? 'the answer is not HTTP' : `failed: ${code}`);
}

function failure(reason: string): SendResult {
  return { outcome: 'failed', status: null, reason, excerpt: null, retryAfterMs: null };
}
