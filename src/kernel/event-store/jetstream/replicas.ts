import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { OBJECTS_STREAM } from '#events/object-subjects.ts';
import {
  ADVISORY_STREAM,
  DELIVERIES_STREAM,
  EVENTS_STREAM,
  LEASES_STREAM,
  MCP_STREAM,
  DEAD_LETTERS_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
  WEBHOOKS_STREAM,
} from '#events/subjects.ts';
import type { JetStreamConnection } from './connection.ts';
import { requestWithRetry } from './request.ts';

/** Replicas of a stream in a cluster: one server may be lost without loss of data. */
const CLUSTER_REPLICAS = 3;
const STREAM_NOT_FOUND = 10059;
/** Time limit for each stream: a stream that gets replicas may have no leader for a moment. */
const ANSWER_MS = 30_000;

/** All streams of the service in JetStream. */
const streams = [
  EVENTS_STREAM,
  LEASES_STREAM,
  PUBLIC_STREAM,
  TIMERS_STREAM,
  ADVISORY_STREAM,
  DEAD_LETTERS_STREAM,
  OBJECTS_STREAM,
  WEBHOOKS_STREAM,
  DELIVERIES_STREAM,
  MCP_STREAM,
];

/** Replicas of a new stream: the number requested, else 3 in a cluster and 1 without. */
export function replicasFor(nc: NatsConnection, asked: number | undefined): number {
  return asked ?? (nc.info?.cluster === undefined ? 1 : CLUSTER_REPLICAS);
}

export type RaisedStream = { stream: string; from: number; to: number };

/**
 * Raises every stream that has fewer replicas to the number wanted; streams with more keep theirs.
 * The servers copy in the background: `streams.info(name).cluster` shows when they are done. Needs
 * the operator's permissions.
 * @throws JetStreamApiError if there are fewer servers than that; Unavailable('event-log')
 */
export async function raiseReplicas(
  connection: JetStreamConnection,
  asked?: number,
): Promise<RaisedStream[]> {
  const { nc, jsm } = connection;
  const to = replicasFor(nc, asked);
  const raised: RaisedStream[] = [];
  for (const stream of streams) {
    const from = await requestWithRetry(connection, ANSWER_MS, () => replicasOf(jsm, stream));
    if (from === null || from >= to) continue;
    await requestWithRetry(connection, ANSWER_MS, () =>
      jsm.streams.update(stream, { num_replicas: to }),
    );
    raised.push({ stream, from, to });
  }
  return raised;
}

/** null: the stream does not exist. */
async function replicasOf(jsm: JetStreamManager, stream: string): Promise<number | null> {
  try {
    return (await jsm.streams.info(stream)).config.num_replicas;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return null;
    throw error;
  }
}

/**
 * Error codes of a cluster (no peers, too few resources) and of a single server (no replicas at
 * all).
 */
const SHORT_OF_SERVERS = new Set([10005, 10023, 10074]);

/**
 * Whether the error means that there are too few servers for the stream's replicas at the moment.
 */
export function isShortOfServers(error: unknown): boolean {
  return error instanceof JetStreamApiError && SHORT_OF_SERVERS.has(error.code);
}
