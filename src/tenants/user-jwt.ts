import { randomUUID } from 'node:crypto';
import type { TenantGrant } from '#events/tenant-subjects.ts';
import type { Issuer } from './nkey.ts';

/** What a server asks when somebody connects. */
export type AuthorizationRequest = {
  serverId: string;
  /** The key that the server has made for the connection; what is granted is granted to it. */
  userKey: string;
  /** As the client sent them. */
  user: string;
  password: string;
  /** Where it comes from, as the server sees it. */
  address: string;
};

/** What a tenant may have open and send at most: all its requests are small. */
const SUBSCRIPTIONS_MAX = 100;
const PAYLOAD_BYTES_MAX = 64 * 1024;

/**
 * Reads a server's request; null where it is none. It comes from the server itself: not checked.
 */
export function readRequest(token: string): AuthorizationRequest | null {
  try {
    const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
    const { nats } = JSON.parse(text) as { nats: RequestClaims };
    const { user = '', pass = '' } = nats.connect_opts;
    return {
      serverId: nats.server_id.id,
      userKey: nats.user_nkey,
      user,
      password: pass,
      address: nats.client_info?.host ?? '',
    };
  } catch {
    return null;
  }
}

type RequestClaims = {
  server_id: { id: string };
  user_nkey: string;
  connect_opts: { user?: string; pass?: string };
  client_info?: { host?: string };
};

/** The answer that lets a connection in, with what it may do, until `untilMs` (epoch). */
export function admit(
  issuer: Issuer,
  { serverId, userKey }: AuthorizationRequest,
  grant: TenantGrant & { name: string; nowMs: number; untilMs: number },
): string {
  const { account, publish, subscribe, name, nowMs, untilMs } = grant;
  const claims = {
    type: 'user',
    version: 2,
    pub: publish.length > 0 ? { allow: publish } : { deny: ['>'] },
    sub: { allow: subscribe },
    subs: SUBSCRIPTIONS_MAX,
    data: -1,
    payload: PAYLOAD_BYTES_MAX,
  };
  const exp = Math.floor(untilMs / 1000);
  const jwt = write(issuer, { aud: account, sub: userKey, name, exp }, claims, nowMs);
  return answer(issuer, { serverId, userKey }, { jwt }, nowMs);
}

/** The answer that refuses it; the server's log has the reason, the client is told nothing. */
export function refuse(
  issuer: Issuer,
  request: AuthorizationRequest,
  reason: string,
  nowMs: number,
): string {
  return answer(issuer, request, { error: reason }, nowMs);
}

function answer(
  issuer: Issuer,
  { serverId, userKey }: Pick<AuthorizationRequest, 'serverId' | 'userKey'>,
  outcome: { jwt: string } | { error: string },
  nowMs: number,
): string {
  const claims = { type: 'authorization_response', version: 2, ...outcome };
  return write(issuer, { aud: serverId, sub: userKey }, claims, nowMs);
}

function write(issuer: Issuer, registered: object, nats: object, nowMs: number): string {
  const header = encode({ typ: 'JWT', alg: 'ed25519-nkey' });
  const iat = Math.floor(nowMs / 1000);
  const standard = { jti: randomUUID(), iat, iss: issuer.publicKey };
  const signed = `${header}.${encode({ ...standard, ...registered, nats })}`;
  return `${signed}.${issuer.sign(signed).toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
