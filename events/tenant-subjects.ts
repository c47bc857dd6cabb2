/** The subjects that a tenant's own NATS connection may use, and the accounts that enforce it. */
import { isId, PUBLIC_STREAM, publicFilterOf } from './subjects.ts';

/**
 * The service's account holds the streams. Tenants that only listen are in it too, without
 * permission to publish. Tenants with a consumer are in an account without a stream: JetStream
 * answers to any reply subject that a request names, unchecked. A tenant that may send it any
 * request within an account could have the answers stored as events there. Requests across accounts
 * are answered across accounts.
 */
export const SERVICE_ACCOUNT = 'SERVICE';
export const TENANTS_ACCOUNT = 'TENANTS';

/** The prefix of JetStream's subjects as tenants with a consumer use them: their `apiPrefix`. */
export const TENANT_API = 'tenant';

/**
 * The two ways in which a tenant connects, named by its user name: `live` gets events as they
 * happen, `durable` reads the organization's own durable consumer.
 */
export const tenantUses = ['live', 'durable'] as const;
export type TenantUse = (typeof tenantUses)[number];

export type TenantGrant = { account: string; publish: string[]; subscribe: string[] };

/** The durable consumer of an organization's events, which the service creates. */
export function tenantDurable(organizationId: string): { name: string; filter: string } {
  const organization = token(organizationId);
  return { name: `org_${organization}`, filter: publicFilterOf(organizationId) };
}

/**
 * The inbox prefix of a tenant with a consumer. It cannot be guessed without the key, so no other
 * client can have an answer sent there.
 * @param keyHash SHA-256 of its API key, in hex
 */
export function tenantInbox(keyHash: string): string {
  return `_INBOX_${token(keyHash.slice(0, 32))}`;
}

/** The permissions of a tenant. */
export function tenantGrant(use: TenantUse, organizationId: string, keyHash: string): TenantGrant {
  const live = [`live.evt.${token(organizationId)}.>`];
  if (use === 'live') return { account: SERVICE_ACCOUNT, publish: [], subscribe: live };
  const { name } = tenantDurable(organizationId);
  return {
    account: TENANTS_ACCOUNT,
    publish: [
      `${TENANT_API}.CONSUMER.MSG.NEXT.${PUBLIC_STREAM}.${name}`,
      `${TENANT_API}.CONSUMER.INFO.${PUBLIC_STREAM}.${name}`,
      `$JS.ACK.${PUBLIC_STREAM}.${name}.>`,
    ],
    subscribe: [`${tenantInbox(keyHash)}.>`],
  };
}

/**
 * The requests that the service's account accepts from the tenants' account: the subject, the name
 * that tenants use, and whether one request has many answers.
 */
export const tenantServices = [
  {
    subject: `$JS.API.CONSUMER.MSG.NEXT.${PUBLIC_STREAM}.*`,
    as: `${TENANT_API}.CONSUMER.MSG.NEXT.${PUBLIC_STREAM}.*`,
    answersMany: true,
  },
  {
    subject: `$JS.API.CONSUMER.INFO.${PUBLIC_STREAM}.*`,
    as: `${TENANT_API}.CONSUMER.INFO.${PUBLIC_STREAM}.*`,
    answersMany: false,
  },
  {
    subject: `$JS.ACK.${PUBLIC_STREAM}.>`,
    as: `$JS.ACK.${PUBLIC_STREAM}.>`,
    answersMany: true,
  },
] as const;

/** The subject on which the server asks for the authorization of a connection. */
export const AUTHORIZATION_REQUESTS = '$SYS.REQ.USER.AUTH';
/**
 * The requests that the service's account may send to the servers: list connections, and close one.
 */
export const serverServices = [
  { subject: '$SYS.REQ.SERVER.PING.CONNZ', answersMany: true },
  { subject: '$SYS.REQ.SERVER.*.KICK', answersMany: false },
] as const;
export const CONNECTIONS_REQUESTS = serverServices[0].subject;

export function kickSubject(natsServerId: string): string {
  return serverServices[1].subject.replace('*', token(natsServerId));
}

function token(id: string): string {
  if (!isId(id)) throw new RangeError(`not an id: ${JSON.stringify(id.slice(0, 80))}`);
  return id;
}
