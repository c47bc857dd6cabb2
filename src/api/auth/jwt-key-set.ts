import { setTimeout as pause } from 'node:timers/promises';
import { createLocalJWKSet, type JWK, type JWTVerifyGetKey } from 'jose';
import { Unavailable } from '#src/errors.ts';
import type { Log } from '#src/telemetry/logger.ts';
import { fetchKeySet, isPassing, NoKeySet, shown } from '../fetch-key-set.ts';
import type { JwtKeys } from './jwt.ts';

export type KeySetTimes = {
  /** A fetch takes no longer, its body included. */
  fetchMs: number;
  /** How long a start waits for whoever is to serve the set, and is being started too. */
  startMs: number;
  /** The set is fetched anew this often: a key that was taken from it is refused by then. */
  refreshEveryMs: number;
  /** The same after a fetch that has failed. */
  retryEveryMs: number;
  /** After a look for an unknown key, tokens by such keys are refused at once for this long. */
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
const UNENCRYPTED = 'the key set of JWTs comes unencrypted: keys may be forged on the way';
/** Keys of a set that count; providers have two or three. */
const KEYS_MAX = 100;

/**
 * The public keys at an address, fetched before it resolves and every five minutes. A token by a
 * key that is not known makes it look at once, so a rotation needs no waiting; while it has just
 * looked such tokens are refused. Where the address does not answer the known keys go on.
 * @param algorithms which keys count; each is for its own algorithm alone, whatever a token says
 * @throws NoKeySet where the address is none of a key set's; one that is merely down is waited for
 * while the service goes on
 */
export async function followKeySet(options: {
  url: string;
  algorithms: readonly string[];
  log: Log;
  times?: KeySetTimes;
}): Promise<JwtKeys & Disposable> {
  const { url, algorithms, log, times = usualTimes } = options;
  let known: ReturnType<typeof createLocalJWKSet> | null = null;
  let fetching: Promise<unknown> | null = null;
  let mayLookAt = 0;
  let timer: NodeJS.Timeout | undefined;
  const stop = new AbortController();

  /** @returns what went wrong; null: nothing did */
  async function fetchOnce(): Promise<unknown> {
    clearTimeout(timer);
    let nextMs = times.refreshEveryMs;
    const within = AbortSignal.any([stop.signal, AbortSignal.timeout(times.fetchMs)]);
    try {
      const keys = usable(await fetchKeySet(url, within), algorithms);
      if (keys.length === 0) log.warn({ url: shown(url) }, 'the key set of JWTs has no usable key');
      known = createLocalJWKSet({ keys });
      return null;
    } catch (error) {
      nextMs = times.retryEveryMs;
      if (!stop.signal.aborted)
        log.warn({ url: shown(url), err: error, known: known !== null }, 'no key set of JWTs');
      return error;
    } finally {
      if (!stop.signal.aborted) timer = setTimeout(() => void refresh(), nextMs).unref();
    }
  }
  /** Never rejects; whoever asks while one is under way shares it. */
  function refresh(): Promise<unknown> {
    fetching ??= fetchOnce().finally(() => (fetching = null));
    return fetching;
  }
  async function fetchFirst(): Promise<void> {
    const until = performance.now() + times.startMs;
    for (;;) {
      const trouble = await refresh();
      if (trouble === null || isPassing(trouble)) return;
      if (performance.now() > until) {
        end();
        throw new NoKeySet(url, trouble);
      }
      await pause(START_PAUSE_MS);
    }
  }
  function end(): void {
    stop.abort();
    clearTimeout(timer);
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

  if (url.startsWith('http:')) log.warn({ url: shown(url) }, UNENCRYPTED);
  await fetchFirst();
  return { algorithms, find, [Symbol.dispose]: end };
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
