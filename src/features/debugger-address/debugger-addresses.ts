import type { SessionState } from '#events/session.ts';
import { errors, reject, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Addresses } from '#src/roles/api/schemas/present-session.ts';

/** Port: ports of sessions' own, which a gateway opens and closes. */
export type DebuggerAddresses = {
  /** `host:port` of a port for this caller's use of the session, until the session ends. */
  open(session: SessionState, keyHash: string | null): Promise<{ address: string } | Rejection>;
  /** Closes all ports of the session at that gateway, and the connections that came by them. */
  close(session: SessionState, keyHash: string | null): Promise<{ closed: number } | Rejection>;
};

/** A gateway looks up the session, 5 s at most, and listens. */
const ANSWER_MS = 10_000;

/**
 * Asks the gateway at this address under the ticket that the caller has: it is the gateway that
 * decides what the ticket is worth.
 * @param gatewayUrl `http://host:port`
 */
export function createDebuggerAddresses({
  gatewayUrl,
  cdpUrl,
  log,
}: {
  gatewayUrl: string;
  cdpUrl: Addresses['cdpUrl'];
  log: Pick<Logger, 'warn'>;
}): DebuggerAddresses {
  async function ask(method: 'POST' | 'DELETE', session: SessionState, keyHash: string | null) {
    const ticket = cdpUrl(session, keyHash).split('/').at(-1) ?? '';
    try {
      const answer = await fetch(`${gatewayUrl}/devtools/debugger-address`, {
        method,
        headers: { 'x-bss-ticket': ticket },
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const body = (await answer.json()) as Record<string, unknown>;
      return answer.ok ? body : refusalIn(body, session.id);
    } catch (error) {
      log.warn({ err: error, gatewayUrl, sessionId: session.id }, 'no gateway answered');
      return unavailable();
    }
  }
  return {
    async open(session, keyHash) {
      const body = await ask('POST', session, keyHash);
      if ('address' in body && typeof body.address === 'string') return { address: body.address };
      return 'context' in body ? (body as Rejection) : unavailable();
    },
    async close(session, keyHash) {
      const body = await ask('DELETE', session, keyHash);
      if ('closed' in body && typeof body.closed === 'number') return { closed: body.closed };
      return 'context' in body ? (body as Rejection) : unavailable();
    },
  };
}

/** What the API passes on of a gateway's refusals. Others mean that no gateway is there. */
const PASSED_ON: readonly ErrorName[] = [
  'DEBUGGER_PORTS_OFF',
  'DEBUGGER_PORT_LIMIT_EXCEEDED',
  'RATE_LIMIT_EXCEEDED',
  'SESSION_NOT_READY',
  'SESSION_ENDED',
];

function refusalIn({ error, context }: Record<string, unknown>, sessionId: string): Rejection {
  const code = PASSED_ON.find((name) => name === error);
  if (code === undefined) return unavailable();
  const more = errors[code].status === 409 ? { retryAfterSeconds: 1 } : {};
  return reject(code, { session_id: sessionId, ...(context as object) }, more);
}

function unavailable(): Rejection {
  return reject('UNAVAILABLE', { part: 'gateway' }, { message: 'No gateway answers; try again.' });
}
