import { noteAllowance } from './allowance.ts';
import { credential, operatorToken, setOperatorToken, signOut } from './credential.ts';
import { SERVICE_URL } from './service-url.ts';

/** An answer that is no success, as a sentence for people. */
export class RequestFailed extends Error {
  /** 0: no answer came. */
  readonly status: number;
  /** How long the service asks to wait. */
  readonly retryAfterMs: number | null;
  constructor(status: number, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * Sends a request with the tab's key, or with the operator's token for `/api/operator`. After a 401
 * the tab is signed out, with the reason.
 */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const isOperators = path.startsWith('/api/operator');
  const used = isOperators ? operatorToken.value : credential.value;
  if (used === null) throw new RequestFailed(401, 'This tab is signed out.');
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${used}`);
  const answer = await fetch(SERVICE_URL + path, { ...init, headers }).catch((error: unknown) => {
    if (init.signal?.aborted === true) throw error;
    const unreachable = 'The service does not answer. Is it running, and is the network up?';
    throw new RequestFailed(0, unreachable);
  });
  if (!isOperators) noteAllowance(answer.headers);
  if (answer.ok || answer.status === 304) return answer;
  const message = await messageOf(answer);
  if (answer.status === 401 && isOperators && operatorToken.value === used) setOperatorToken(null);
  if (answer.status === 401 && !isOperators && credential.value === used) signOut(message);
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
  throw new RequestFailed(answer.status, message, Number.isNaN(seconds) ? null : seconds * 1000);
}

export async function read<Body>(path: string, signal?: AbortSignal): Promise<Body> {
  const answer = await send(path, signal === undefined ? {} : { signal });
  return (await answer.json()) as Body;
}

export const post = <Body>(path: string, body: object) => change<Body>('POST', path, body);
export const remove = (path: string) => send(path, { method: 'DELETE' });

/** Sends a POST, PUT or PATCH. */
export async function change<Body>(method: string, path: string, body: object): Promise<Body> {
  const headers = { 'content-type': 'application/json' };
  const answer = await send(path, { method, headers, body: JSON.stringify(body) });
  return (await answer.json()) as Body;
}

async function messageOf(answer: Response): Promise<string> {
  const problem = (await answer.json().catch(() => null)) as { message?: unknown } | null;
  if (typeof problem?.message === 'string') return problem.message;
  return `The service answered ${answer.status}.`;
}

export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
