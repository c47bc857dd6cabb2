import type { JSONWebKeySet } from 'jose';

const BODY_BYTES_MAX = 256 * 1024;

/** There is no key set at the address that JWT_JWKS_URL names. */
export class NoKeySet extends Error {
  override readonly name = 'NoKeySet';
  constructor(url: string, trouble: unknown) {
    super(`JWT_JWKS_URL: no key set at ${shown(url)}: ${reasonOf(trouble)}`, { cause: trouble });
  }
}

/** The server is there, and says that it cannot now. */
class NotNow extends Error {
  override readonly name = 'NotNow';
}

/** @throws Error where it does not answer in time, not with 200, too much, or with no key set. */
export async function fetchKeySet(url: string, signal: AbortSignal): Promise<readonly unknown[]> {
  // A redirect would let whoever can answer for that address once choose another one.
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { signal, redirect: 'error', headers });
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
    if (bytes > BODY_BYTES_MAX) throw new Error(`it answers more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const keys = keysIn(Buffer.concat(chunks).toString());
  if (!Array.isArray(keys)) throw new Error('it answers no key set');
  return keys;
}

function keysIn(text: string): unknown {
  try {
    return (JSON.parse(text) as Partial<JSONWebKeySet> | null)?.keys;
  } catch {
    return undefined;
  }
}

/** What comes of networks and servers that are down for a while, not of a wrong address. */
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

/** Whether a fetch that failed so may go well later, without anybody's changing the address. */
export function isPassing(trouble: unknown): boolean {
  if (!(trouble instanceof Error)) return false;
  if (['NotNow', 'TimeoutError', 'AbortError'].includes(trouble.name)) return true;
  return PASSING.has(codeOf(trouble) ?? '');
}

function codeOf({ cause }: Error): string | undefined {
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}

/** fetch says "fetch failed", and why in the error that caused its own. */
function reasonOf(trouble: unknown): string {
  if (!(trouble instanceof Error)) return String(trouble);
  const { cause } = trouble;
  const why = cause instanceof Error ? cause.message : trouble.message;
  return why === '' ? (codeOf(trouble) ?? trouble.message) : why;
}

/** Without the query, which may hold what is nobody's business. */
export function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
