import {
  encodeAuthorizationResponse,
  encodeUser,
  type AuthorizationRequest as RequestClaims,
} from '@nats-io/jwt';
import { decodeJwt } from 'jose';
import type { TenantGrant } from '#events/tenant-subjects.ts';
import type { Issuer } from './nkey.ts';

/** What a server asks when a client connects. */
export type AuthorizationRequest = {
  serverId: string;
  /** The key that the server has made for the connection; permissions are granted to it. */
  userKey: string;
  /** As the client sent them. */
  user: string;
  password: string;
  /** Where the client connects from, as the server sees it. */
  address: string;
};

/** What a tenant may have open and send at most: all its requests are small. */
const SUBSCRIPTIONS_MAX = 100;
const PAYLOAD_BYTES_MAX = 64 * 1024;

/**
 * Reads a server's request; null where the token is not one. The signature is not verified: the
 * subject is one that only the servers publish to, and `decode` of @nats-io/jwt, which verifies,
 * takes 13 ms of the event loop for every attempt to connect.
 */
export function readRequest(token: string): AuthorizationRequest | null {
  try {
    const { nats } = decodeJwt<{ nats: RequestClaims }>(token);
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

/**
 * The answer that admits a connection with the permissions of `grant`.
 * @param grant `untilMs`: when the server is to end the connection, in ms since the epoch
 */
export async function admit(
  { keyPair }: Issuer,
  { serverId, userKey }: AuthorizationRequest,
  grant: TenantGrant & { name: string; untilMs: number },
): Promise<string> {
  const { account, publish, subscribe, name, untilMs } = grant;
  const permissions = {
    pub: publish.length > 0 ? { allow: publish } : { deny: ['>'] },
    sub: { allow: subscribe },
    subs: SUBSCRIPTIONS_MAX,
    payload: PAYLOAD_BYTES_MAX,
  };
  const exp = Math.floor(untilMs / 1000);
  const jwt = await encodeUser(name, userKey, keyPair, permissions, { aud: account, exp });
  return encodeAuthorizationResponse(userKey, serverId, keyPair, { jwt }, {});
}

/** The answer that refuses a connection; the reason goes to the server's log only. */
export function refuse(
  { keyPair }: Issuer,
  { serverId, userKey }: AuthorizationRequest,
  reason: string,
): Promise<string> {
  return encodeAuthorizationResponse(userKey, serverId, keyPair, { error: reason }, {});
}
