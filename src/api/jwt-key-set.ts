import { createLocalJWKSet, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose';
import { Unavailable } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { JwtKeys } from './jwt.ts';

export type KeySetTimes = {
  /** A fetch takes no longer, its body included. */
  fetchMs: number;
  /** The set is fetched anew this often: a key that was taken from it is refused by then. */
  refreshEveryMs: number;
  /** The same after a fetch that has failed. */
  retryEveryMs: number;
  /** After a look for an unknown key, tokens by such keys are refused at once for this long. */
  coolDownMs: number;
};

const usualTimes: KeySetTimes = {
  fetchMs: 5_000,
  refreshEveryMs: 5 * 60_000,
  retryEveryMs: 10_000,
  coolDownMs: 5_000,
};

const BODY_BYTES_MAX = 256 * 1024;
/** Keys of a set that count; providers have two or three. */
const KEYS_MAX = 100;

/**
 * The public keys at an address, fetched before it resolves and every five minutes. A token by a
 * key that is not known makes it look at once, so a rotation needs no waiting; while it has just
 * looked such tokens are refused. Where the address does not answer the known keys go on.
 * @param algorithms which keys count; each is for its own algorithm alone, whatever a token says
 */
export async function followKeySet(options: {
  url: string;
  algorithms: readonly string[];
  log: Log;
  times?: KeySetTimes;
}): Promise<JwtKeys & Disposable> {
  const { url, algorithms, log, times = usualTimes } = options;
  let known: ReturnType<typeof createLocalJWKSet> | null = null;
  let fetching: Promise<void> | null = null;
  let mayLookAt = 0;
  let timer: NodeJS.Timeout | undefined;
  const stop = new AbortController();

  async function fetchOnce(): Promise<void> {
    clearTimeout(timer);
    let nextMs = times.refreshEveryMs;
    const within = AbortSignal.any([stop.signal, AbortSignal.timeout(times.fetchMs)]);
    try {
      const keys = usable(await fetchKeySet(url, within), algorithms);
      if (keys.length === 0) log.warn({ url: shown(url) }, 'the key set of JWTs has no usable key');
      known = createLocalJWKSet({ keys });
    } catch (error) {
      if (stop.signal.aborted) return;
      nextMs = times.retryEveryMs;
      log.warn({ url: shown(url), err: error, known: known !== null }, 'no key set of JWTs');
    }
    if (!stop.signal.aborted) timer = setTimeout(() => void refresh(), nextMs).unref();
  }
  /** Never rejects; whoever asks while one is under way shares it. */
  function refresh(): Promise<void> {
    fetching ??= fetchOnce().finally(() => (fetching = null));
    return fetching;
  }
  async function lookAgain(): Promise<void> {
    if (fetching === null && performance.now() < mayLookAt) return;
    await refresh();
    mayLookAt = performance.now() + times.coolDownMs;
  }
  async function find(...asked: Parameters<JWTVerifyGetKey>) {
    if (known !== null) {
      const key = await known(...asked).catch(() => null);
      if (key !== null) return key;
    }
    await lookAgain();
    if (known === null) throw new Unavailable('key-set');
    return known(...asked);
  }

  if (url.startsWith('http:'))
    log.warn(
      { url: shown(url) },
      'the key set of JWTs comes unencrypted: keys may be forged on the way',
    );
  await refresh();
  return {
    algorithms,
    find,
    [Symbol.dispose]() {
      stop.abort();
      clearTimeout(timer);
    },
  };
}

/** @throws Error where it does not answer in time, not with 200, too much, or with no key set. */
async function fetchKeySet(url: string, signal: AbortSignal): Promise<readonly unknown[]> {
  // A redirect would let whoever can answer for that address once choose another one.
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { signal, redirect: 'error', headers });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    throw new Error(`it answers ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error(`it answers more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const { keys } = JSON.parse(Buffer.concat(chunks).toString()) as Partial<JSONWebKeySet>;
  if (!Array.isArray(keys)) throw new Error('it answers no key set');
  return keys;
}

/**
 * The keys that count, each with the algorithm it is for: what it says of itself, else the usual
 * one of its kind. One that is neither, or whose algorithm does not count, is left out.
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

/** Without the query, which may hold what is nobody's business. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
