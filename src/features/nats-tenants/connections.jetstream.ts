import {
  CONNECTIONS_REQUESTS,
  kickSubject,
  SERVICE_ACCOUNT,
  TENANTS_ACCOUNT,
} from '#events/tenant-subjects.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';

/** A tenant's connection to one of the NATS servers. */
export type TenantConnection = {
  serverId: string;
  /** Its number on that server. */
  connectionId: number;
  /** SHA-256 of its API key, which is the name in its user JWT. */
  keyHash: string;
};

const PAGE = 1_000;
/** How long servers may take to answer, and how long after one the next may come. */
const ANSWERS_MS = 2_000;
const NEXT_MS = 250;
const KICK_MS = 2_000;
const KEY_HASH = /^[0-9a-f]{64}$/;

/** All tenants' connections there are now. @throws Error if no server answers */
export async function listTenants({ nc }: JetStreamConnection): Promise<TenantConnection[]> {
  const found: TenantConnection[] = [];
  for (const acc of [SERVICE_ACCOUNT, TENANTS_ACCOUNT])
    for (let offset = 0, isMore = true; isMore; offset += PAGE) {
      isMore = false;
      const body = JSON.stringify({ acc, auth: true, limit: PAGE, offset });
      const patience = { strategy: 'stall', maxWait: ANSWERS_MS, stall: NEXT_MS } as const;
      for await (const answer of await nc.requestMany(CONNECTIONS_REQUESTS, body, patience)) {
        const { server, data } = answer.json<Listing>();
        for (const { cid, authorized_user: keyHash = '' } of data.connections)
          if (KEY_HASH.test(keyHash))
            found.push({ serverId: server.id, connectionId: cid, keyHash });
        isMore ||= data.total > offset + PAGE;
      }
    }
  return found;
}

type Listing = {
  server: { id: string };
  data: { total: number; connections: { cid: number; authorized_user?: string }[] };
};

/** Ends the connection. @throws Error where its server does not answer: then it is gone, too */
export async function kick(
  { nc }: JetStreamConnection,
  { serverId, connectionId: cid }: TenantConnection,
): Promise<void> {
  await nc.request(kickSubject(serverId), JSON.stringify({ cid }), { timeout: KICK_MS });
}
