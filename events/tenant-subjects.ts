/** What a tenant's own NATS connection may touch, and the accounts that keep it to that. */
import { isId, PUBLIC_STREAM, publicFilterOf } from './subjects.ts';

/**
 * The service's account has the streams. Tenants that only listen are in it too, where they may
 * publish nothing. Those that consume are in one without a stream: JetStream answers to whatever
 * subject a request names as its reply, unchecked, so whoever may ask it anything in an account
 * could have its answers stored as events there. What crosses accounts is answered across them.
 */
export const SERVICE_ACCOUNT = 'SERVICE';
export const TENANTS_ACCOUNT = 'TENANTS';

/** The beginning of JetStream's subjects as consuming tenants have them: their `apiPrefix`. */
export const TENANT_API = 'tenant';

/**
 * What a tenant connects as, by its user name: `live` hears events as they happen, `durable` works
 * through the organization's own durable consumer.
 */
export const tenantUses = ['live', 'durable'] as const;
export type TenantUse = (typeof tenantUses)[number];

export type TenantGrant = { account: string; publish: string[]; subscribe: string[] };

/** The durable consumer of an organization's events, which the service makes. */
export function tenantDurable(organizationId: string): { name: string; filter: string } {
  const organization = token(organizationId);
  return { name: `org_${organization}`, filter: publicFilterOf(organizationId) };
}

/**
 * The prefix of a consuming tenant's inboxes. Nobody without the key can tell it, so nobody can
 * have an answer sent there.
 * @param keyHash SHA-256 of its API key, in hex
 */
export function tenantInbox(keyHash: string): string {
  return `_INBOX_${token(keyHash.slice(0, 32))}`;
}

/** All that a tenant may do, and where. */
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
 * What the service's account lets the tenants' one ask for: the subject, what the tenants call it,
 * and whether one request has many answers.
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

/** Where the server asks who a connection is. */
export const AUTHORIZATION_REQUESTS = '$SYS.REQ.USER.AUTH';
/** What the service's account may ask of servers themselves: who is connected, and to end it. */
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
