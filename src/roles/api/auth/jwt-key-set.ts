import { createRemoteJWKSet, customFetch, errors, type JWK, type JWTVerifyGetKey } from 'jose';
import { Unavailable } from '#src/kernel/errors.ts';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { JwtKeys } from './jwt.ts';

export type KeySetTimes = {
  /** Time-out of a fetch, its body included. */
  fetchMs: number;
  /** How long a start waits for an issuer that is starting at the same time. */
  startMs: number;
  /** Interval between fetches: a key that was removed from the set is refused by then. */
  refreshEveryMs: number;
  /** Interval after a failed fetch. */
  retryEveryMs: number;
  /**
   * After a fetch for an unknown key, tokens with unknown keys are refused without a fetch for this
   * long.
   */
  coolDownMs: number;
};

const usualTimes: KeySetTimes = {
  fetchMs: 5_000,
  startMs: 10_000,
  refreshEveryMs: 5 * 60_000,
  retryEveryMs: 10_000,
  coolDownMs: 5_000,
};

const START_PAUSE_MS = 200;
/** Keys of a set that are used; providers have two or three. */
const KEYS_MAX = 100;
const BODY_BYTES_MAX = 256 * 1024;

/** The address in JWT_JWKS_URL does not serve a key set. */
export class NoKeySet extends Error {
  override readonly name = 'NoKeySet';
  constructor(url: string, trouble: unknown) {
    super(`JWT_JWKS_URL: no key set at ${shown(url)}: ${reasonOf(trouble)}`, { cause: trouble });
  }
}

/** The server answers that it cannot serve the set now. */
class NotNow extends Error {
  override readonly name = 'NotNow';
}

/**
 * The public keys at an address, by jose's remote key set. They are fetched before this resolves
 * and every five minutes. A token with an unknown key causes a fetch at once, so that a rotation
 * takes effect without waiting; within the cool-down it is refused. While the address does not
 * answer, the known keys stay valid.
 * @param algorithms accepted algorithms; each key is for its own algorithm alone, whatever a
 * token's header names
 * @throws NoKeySet if the address does not serve a key set. An address that is merely down does not
 * delay the start: tokens are undecided (Unavailable) until it answers
 */
export async function followKeySet(options: {
  url: string;
  algorithms: readonly string[];
  log: Logger;
  times?: KeySetTimes;
}): Promise<JwtKeys & Disposable> {
  const { url, algorithms, log, times = usualTimes } = options;
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let mayFetchAt = 0;
  const set = createRemoteJWKSet(new URL(url), {
    timeoutDuration: times.fetchMs,
    // This module decides when to fetch. By itself jose drops known keys that are too old and
    // cannot be fetched again. Its cool-down begins with a successful fetch: in an outage each
    // token with an unknown key would cause another fetch.
    cacheMaxAge: Infinity,
    cooldownDuration: Infinity,
    [customFetch]: async (address, { headers, signal }) => {
      clearTimeout(timer);
      let nextMs = times.refreshEveryMs;
      try {
        const within = AbortSignal.any([signal, stop.signal]);
        const keys = usable(await fetchKeys(address, headers, within), algorithms);
        if (keys.length === 0) log.warn({ url: shown(url) }, 'the JWT key set has no usable key');
        return Response.json({ keys });
      } catch (error) {
        nextMs = times.retryEveryMs;
        const known = set.jwks() !== undefined;
        if (!stop.signal.aborted)
          log.warn({ url: shown(url), err: error, known }, 'fetching the JWT key set failed');
        throw error;
      } finally {
        if (!stop.signal.aborted) timer = setTimeout(() => void refresh(), nextMs).unref();
      }
    },
  });

  /** Concurrent callers share one fetch. @returns the failure; undefined if it succeeded */
  function refresh(): Promise<unknown> {
    return set.reload().catch((failure: unknown) => failure);
  }
  async function refreshForUnknownKey(): Promise<void> {
    if (!set.reloading && performance.now() < mayFetchAt) return;
    await refresh();
    mayFetchAt = performance.now() + times.coolDownMs;
  }
  async function find(...asked: Parameters<JWTVerifyGetKey>) {
    if (set.jwks() !== undefined) {
      const key = await set(...asked).catch(() => null);
      if (key !== null) return key;
    }
    await refreshForUnknownKey();
    if (set.jwks() === undefined) throw new Unavailable('key-set');
    return set(...asked);
  }
  function end(): void {
    stop.abort();
    clearTimeout(timer);
  }

  if (url.startsWith('http:'))
    log.warn({ url: shown(url) }, 'the JWT key set is fetched without TLS: keys can be forged');
  const until = performance.now() + times.startMs;
  for (;;) {
    const failure = await refresh();
    if (failure === undefined || isPassing(failure)) break;
    if (performance.now() > until) {
      end();
      throw new NoKeySet(url, failure);
    }
    await sleep(START_PAUSE_MS);
  }
  return { algorithms, find, [Symbol.dispose]: end };
}

/** @throws Error if the answer is late, is not 200, is too large, or is not a key set */
async function fetchKeys(
  url: string,
  headers: Headers,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  // A redirect would let a server other than the configured one choose the keys.
  const response = await fetch(url, { headers, signal, redirect: 'error' });
  const { status, body } = response;
  if (status !== 200 || body === null) {
    await body?.cancel();
    const isLater = status >= 500 || status === 408 || status === 429;
    throw new (isLater ? NotNow : Error)(`it answers ${status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX)
      throw new Error(`the response is larger than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const keys = keysIn(Buffer.concat(chunks).toString());
  if (!Array.isArray(keys)) throw new Error('the response is not a JSON Web Key Set');
  return keys;
}

function keysIn(text: string): unknown {
  try {
    return (parseForeignJson(text, { bytesMax: BODY_BYTES_MAX }) as { keys?: unknown } | null)
      ?.keys;
  } catch {
    return undefined;
  }
}

/**
 * The accepted keys, each with its algorithm: the one that the key names, else the usual one of its
 * type. A key with no known algorithm, or one that is not accepted, is left out.
 */
function usable(keys: readonly unknown[], algorithms: readonly string[]): JWK[] {
  const found = [];
  for (const key of keys.slice(0, KEYS_MAX)) {
    if (typeof key !== 'object' || key === null) continue;
    const jwk = key as JWK;
    const alg = jwk.alg ?? usualAlgorithm(jwk);
    if (alg !== null && algorithms.includes(alg)) found.push({ ...jwk, alg });
  }
  return found;
}

function usualAlgorithm({ kty, crv }: JWK): string | null {
  if (kty === 'RSA') return 'RS256';
  return (
    { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512', Ed25519: 'EdDSA' }[crv ?? ''] ?? null
  );
}

/** Failures of networks and servers that are down for a while, as opposed to a wrong address. */
const PASSING = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether a fetch that failed with this error may succeed later at the same address. */
function isPassing(trouble: unknown): boolean {
  if (trouble instanceof NotNow || trouble instanceof errors.JWKSTimeout) return true;
  return trouble instanceof Error && PASSING.has(codeOf(trouble) ?? '');
}

function codeOf({ cause }: Error): string | undefined {
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}

/** fetch reports "fetch failed"; the reason is in the error's cause. */
function reasonOf(trouble: unknown): string {
  if (!(trouble instanceof Error)) return String(trouble);
  const { cause } = trouble;
  const why = cause instanceof Error ? cause.message : trouble.message;
  return why === '' ? (codeOf(trouble) ?? trouble.message) : why;
}

/** Without the query, which may hold a secret. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
