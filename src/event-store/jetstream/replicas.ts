import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import {
  ADVISORY_STREAM,
  ARCHIVE_STREAM,
  EVENTS_STREAM,
  PARKED_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
} from '#events/subjects.ts';
import type { JetStreamConnection } from './connect.ts';
import { ask } from './request.ts';
import { LEASES_STREAM } from '../../messaging/jetstream/jetstream-leases.ts';

/** Copies of a stream in a cluster: one server may be lost, and nothing with it. */
const CLUSTER_REPLICAS = 3;
const STREAM_NOT_FOUND = 10059;
/** Of each stream: one that gets copies may have no leader for a moment. */
const ANSWER_MS = 30_000;

/** All that the service keeps in JetStream. */
const streams = [
  EVENTS_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
  ADVISORY_STREAM,
  PARKED_STREAM,
  ARCHIVE_STREAM,
  LEASES_STREAM,
];

/** How many copies a new stream gets: as asked for, else 3 in a cluster and 1 without. */
export function replicasFor(nc: NatsConnection, asked: number | undefined): number {
  return asked ?? (nc.info?.cluster === undefined ? 1 : CLUSTER_REPLICAS);
}

export type RaisedStream = { stream: string; from: number; to: number };

/**
 * Gives every stream that has fewer copies as many as wanted; those that have more keep theirs. The
 * servers copy in the background: `streams.info(name).cluster` says when they are done. Needs the
 * operator's permissions.
 * @throws JetStreamApiError where there are fewer servers than that; Unavailable('event-log')
 */
export async function raiseReplicas(
  connection: JetStreamConnection,
  asked?: number,
): Promise<RaisedStream[]> {
  const { nc, jsm } = connection;
  const to = replicasFor(nc, asked);
  const raised: RaisedStream[] = [];
  for (const stream of streams) {
    const from = await ask(connection, ANSWER_MS, () => replicasOf(jsm, stream));
    if (from === null || from >= to) continue;
    await ask(connection, ANSWER_MS, () => jsm.streams.update(stream, { num_replicas: to }));
    raised.push({ stream, from, to });
  }
  return raised;
}

/** null: there is no such stream. */
async function replicasOf(jsm: JetStreamManager, stream: string): Promise<number | null> {
  try {
    return (await jsm.streams.info(stream)).config.num_replicas;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
}

/** A cluster's: no peers, too few resources; a single server's: no copies at all. */
const SHORT_OF_SERVERS = new Set([10005, 10023, 10074]);

/** Whether a stream has too few servers for its copies, so far. */
export function isShortOfServers(error: unknown): boolean {
  return error instanceof JetStreamApiError && SHORT_OF_SERVERS.has(error.code);
}
