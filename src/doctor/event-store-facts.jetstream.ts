import type { NatsConnection } from '@nats-io/transport-node';
import type { JetStreamConnection } from '../event-store/jetstream/connect.ts';
import { ask } from '#src/event-store/jetstream/request.ts';
import { examineStreams, type StreamStanding } from '#src/event-store/jetstream/streams.ts';
import { clockSkewMs } from './clock-skew.ts';
import type { LogFacts, LogServerFacts, StreamFacts } from './facts.ts';

const ANSWER_MS = 5_000;
const SERVERS_REQUESTS = '$SYS.REQ.SERVER.PING.JSZ';
const USER_MS = 1_000;
/** How long servers may take to answer, and how long after one the next may come. */
const SERVERS_MS = 1_000;
const NEXT_SERVER_MS = 250;

/** Asks the log how it is; changes nothing. @throws Unavailable */
export async function gatherLogFacts(connection: JetStreamConnection): Promise<LogFacts> {
  const { nc, jsm, hasArchive } = connection;
  const standings = await ask(connection, ANSWER_MS, () => examineStreams(jsm, hasArchive));
  const account = await ask(connection, ANSWER_MS, () => jsm.getAccountInfo());
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

function factsOf(nc: NatsConnection, { name, info, differs, unfit }: StreamStanding): StreamFacts {
  const peers = info?.cluster?.replicas ?? [];
  const away = peers.filter(({ offline, current }) => offline || !current);
  return {
    name,
    isThere: info !== null,
    replicas: info?.config.num_replicas ?? 0,
    leader: (nc.info?.cluster === undefined ? null : info?.cluster?.leader) ?? null,
    differs,
    unfit,
    behind: away.map((peer) => peer.name),
  };
}

type ServerInfo = {
  server: { name: string; ver: string };
  data: { config: { sync_always?: boolean } };
};

/** For users of the account that deploy/nats.conf lets ask. */
async function serversOf(nc: NatsConnection): Promise<LogServerFacts[]> {
  const found: LogServerFacts[] = [];
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

/** The server says what time it is in whatever it tells of a stream. */
async function skewOf(
  connection: JetStreamConnection,
  standings: readonly StreamStanding[],
): Promise<number | null> {
  const known = standings.find(({ info }) => info !== null);
  if (known === undefined) return null;
  return await clockSkewMs(async () => {
    const info = await ask(connection, ANSWER_MS, () => connection.jsm.streams.info(known.name));
    return Date.parse((info as { ts?: string }).ts ?? '');
  });
}

type UserInfo = { data?: { permissions?: { publish?: { allow?: string[]; deny?: string[] } } } };

/** A user that may not even ask is no such one. */
async function mayPublishAll(nc: NatsConnection): Promise<boolean> {
  try {
    const answer = await nc.request('$SYS.REQ.USER.INFO', '', { timeout: USER_MS });
    const { allow = ['>'], deny = [] } = answer.json<UserInfo>().data?.permissions?.publish ?? {};
    return allow.includes('>') && deny.length === 0;
  } catch {
    return false;
  }
}
