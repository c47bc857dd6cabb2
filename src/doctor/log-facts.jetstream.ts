import type { NatsConnection } from '@nats-io/transport-node';
import type { JetStreamConnection } from '../log/connection.jetstream.ts';
import { ask } from '../log/jetstream-ask.ts';
import { examineStreams, type StreamStanding } from '../log/jetstream-streams.ts';
import { clockSkewMs } from './clock-skew.ts';
import type { LogFacts, StreamFacts } from './facts.ts';

const ANSWER_MS = 5_000;
const USER_MS = 1_000;
/** A cluster of JetStream has three servers at least. */
const CLUSTER_SERVERS = 3;

/** Asks the log how it is; changes nothing. @throws Unavailable */
export async function gatherLogFacts(connection: JetStreamConnection): Promise<LogFacts> {
  const { nc, jsm, hasArchive } = connection;
  const standings = await ask(connection, ANSWER_MS, () => examineStreams(jsm, hasArchive));
  const account = await ask(connection, ANSWER_MS, () => jsm.getAccountInfo());
  const maxBytes = account.limits.max_storage;
  return {
    version: nc.info?.version ?? 'unknown',
    servers: nc.info?.cluster === undefined ? 1 : CLUSTER_SERVERS,
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
