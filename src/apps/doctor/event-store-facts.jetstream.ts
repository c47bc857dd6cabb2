import type { NatsConnection } from '@nats-io/transport-node';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import { examineStreams, type StreamStatus } from '#src/kernel/event-store/jetstream/streams.ts';
import { clockSkewMs } from './clock-skew.ts';
import type { EventStoreFacts, NatsServerFacts, StreamFacts } from './facts.ts';

const ANSWER_MS = 5_000;
const SERVERS_REQUESTS = '$SYS.REQ.SERVER.PING.JSZ';
const USER_MS = 1_000;
/** How long to wait for the first server, and for each further one. */
const SERVERS_MS = 1_000;
const NEXT_SERVER_MS = 250;

/** Reads the state of the NATS servers and streams; changes nothing. @throws Unavailable */
export async function gatherEventStoreFacts(
  connection: JetStreamConnection,
): Promise<EventStoreFacts> {
  const { nc, jsm } = connection;
  const standings = await requestWithRetry(connection, ANSWER_MS, () => examineStreams(jsm));
  const account = await requestWithRetry(connection, ANSWER_MS, () => jsm.getAccountInfo());
  const maxBytes = account.limits.max_storage;
  return {
    version: nc.info?.version ?? 'unknown',
    isClustered: nc.info?.cluster !== undefined,
    servers: await serversOf(nc),
    skewMs: await skewOf(connection, standings),
    streams: standings.map((standing) => factsOf(nc, standing)),
    storage: { usedBytes: account.storage, maxBytes: maxBytes > 0 ? maxBytes : null },
    mayPublishAll: await mayPublishAll(nc),
  };
}

function factsOf(nc: NatsConnection, { name, info, differs, unfit }: StreamStatus): StreamFacts {
  const peers = info?.cluster?.replicas ?? [];
  const maxBytes = info?.config.max_bytes ?? -1;
  const away = peers.filter(({ offline, current }) => offline || !current);
  return {
    name,
    isThere: info !== null,
    replicas: info?.config.num_replicas ?? 0,
    leader: (nc.info?.cluster === undefined ? null : info?.cluster?.leader) ?? null,
    differs,
    unfit,
    behind: away.map((peer) => peer.name),
    bytes: info?.state.bytes ?? 0,
    maxBytes: maxBytes > 0 ? maxBytes : null,
  };
}

type ServerInfo = {
  server: { name: string; ver: string };
  data: { config: { sync_always?: boolean } };
};

/** Empty if this user may not ask; deploy/nats.conf allows it to one account. */
async function serversOf(nc: NatsConnection): Promise<NatsServerFacts[]> {
  const found: NatsServerFacts[] = [];
  const patience = { strategy: 'stall', maxWait: SERVERS_MS, stall: NEXT_SERVER_MS } as const;
  try {
    for await (const answer of await nc.requestMany(SERVERS_REQUESTS, '', patience)) {
      const { server, data } = answer.json<ServerInfo>();
      const { name, ver: version } = server;
      found.push({ name, version, syncsAlways: data.config.sync_always === true });
    }
  } catch {
    return [];
  }
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Uses the server's time in the answer to a stream info request. */
async function skewOf(
  connection: JetStreamConnection,
  standings: readonly StreamStatus[],
): Promise<number | null> {
  const known = standings.find(({ info }) => info !== null);
  if (known === undefined) return null;
  return await clockSkewMs(async () => {
    const info = await requestWithRetry(connection, ANSWER_MS, () =>
      connection.jsm.streams.info(known.name),
    );
    return Date.parse((info as { ts?: string }).ts ?? '');
  });
}

type UserInfo = { data?: { permissions?: { publish?: { allow?: string[]; deny?: string[] } } } };

/** False also for a user that may not ask about its permissions. */
async function mayPublishAll(nc: NatsConnection): Promise<boolean> {
  try {
    const answer = await nc.request('$SYS.REQ.USER.INFO', '', { timeout: USER_MS });
    const { allow = ['>'], deny = [] } = answer.json<UserInfo>().data?.permissions?.publish ?? {};
    return allow.includes('>') && deny.length === 0;
  } catch {
    return false;
  }
}
