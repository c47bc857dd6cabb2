import { setTimeout as pause } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import {
  AUTHORIZATION_REQUESTS,
  tenantDurable,
  tenantGrant,
  tenantUses,
} from '#events/tenant-subjects.ts';
import { hashKey } from '#src/ids.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { JetStreamConnection } from '../event-store/jetstream/connect.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { ask } from '#src/event-store/jetstream/request.ts';
import type { Log } from '#src/telemetry/logger.ts';
import { createFailedAttempts, type FailedAttempts } from './failed-attempts.ts';
import { kick, listTenants } from './connections.jetstream.ts';
import { createKeyConnections, type KeyConnections } from './key-connections.ts';
import type { Issuer } from './nkey.ts';
import { admit, readRequest, refuse, type AuthorizationRequest } from './user-jwt.ts';

export type CalloutParts = {
  connection: JetStreamConnection;
  log: EventLog;
  logger: Log;
  issuer: Issuer;
  keys: {
    /** Whose key it is, by its SHA-256 in hex; null where no live key has it. */
    organizationOf(keyHash: string): string | null;
    /** Resolves once an organization's event of this sequence counts there. */
    reached(sequence: number): Promise<void>;
  };
  /** Connections of one key at once. */
  connectionsPerKeyMax: number;
  now: () => number;
};

/** Servers share the requests among all processes that answer. */
const QUEUE = 'tenants';
/** A connection is let in for so long; then its server ends it, and the client connects anew. */
const ADMITTED_MS = 12 * 60 * 60_000;
/**
 * With a key that opens nothing so many are told so in a minute; the rest hear nothing, and wait
 * for the server to end them. Whoever has a key that opens comes in whatever others do.
 */
const FAILED_PER_ADDRESS_MAX = 30;
const FAILED_MAX = 1_000;
const DURABLE_MS = 2_000;
/** The server's code for a consumer of that name with another configuration. */
const CONSUMER_EXISTS = 10_148;
/** Who was being let in while its key was revoked is in by then: servers wait 2 s for an answer. */
const LATECOMERS_MS = 2_500;

/**
 * Answers the servers' question who connects: a tenant, with an API key as password and what it
 * wants as user name, may do what `tenantGrant` says and nothing else; anybody else is refused.
 * A revoked key's connections are ended as soon as its event is here, whoever let them in.
 */
export async function answerCallouts(parts: CalloutParts): Promise<AsyncDisposable> {
  const { connection, logger, connectionsPerKeyMax: max, now } = parts;
  const stop = new AbortController();
  const bounds: Bounds = {
    connections: createKeyConnections({
      max,
      list: async () => (await listTenants(connection)).map(({ keyHash }) => keyHash),
    }),
    failed: createFailedAttempts({
      perAddressMax: FAILED_PER_ADDRESS_MAX,
      max: FAILED_MAX,
      now,
    }),
  };
  const following = followRevocations(parts, stop.signal);

  /** Never throws: who is not answered is refused by its server, and tries again. */
  async function reply(message: Msg): Promise<void> {
    const request = readRequest(message.string());
    if (request === null) return;
    try {
      const answer = await decide(parts, bounds, request);
      if (answer !== null) message.respond(answer);
    } catch (error) {
      logger.error({ err: error }, 'a tenant was not answered');
    }
  }
  async function answerAll(wentWell: () => void): Promise<void> {
    const requests = connection.nc.subscribe(AUTHORIZATION_REQUESTS, { queue: QUEUE });
    const end = () => requests.unsubscribe();
    stop.signal.addEventListener('abort', end, { once: true });
    for await (const request of requests) {
      wentWell();
      void reply(request);
    }
    stop.signal.removeEventListener('abort', end);
  }
  const answering = keepTrying(stop.signal, answerAll, (error) =>
    logger.error({ err: error }, 'tenants cannot be let in; trying again'),
  );
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([answering, following]);
    },
  };
}

type Bounds = { connections: KeyConnections; failed: FailedAttempts };

/** The answer; null: none is given. */
async function decide(
  parts: CalloutParts,
  { connections, failed }: Bounds,
  request: AuthorizationRequest,
): Promise<string | null> {
  const { connection, logger, issuer, keys, now } = parts;
  const keyHash = hashKey(request.password);
  const organizationId = keys.organizationOf(keyHash);
  if (organizationId === null) {
    const { address } = request;
    const place = failed.note(address);
    if (place === 'first-beyond')
      logger.warn({ address }, 'too many come with no key; this minute they are not answered');
    return place === 'answer' ? refuse(issuer, request, 'no such key', now()) : null;
  }
  const use = tenantUses.find((one) => one === request.user);
  if (use === undefined)
    return refuse(issuer, request, `the user is one of ${tenantUses.join(', ')}`, now());
  if (!(await connections.take(keyHash))) {
    logger.warn({ organizationId }, 'a key has as many connections as it may');
    return refuse(issuer, request, 'too many connections with this key', now());
  }
  if (use === 'durable') await makeDurable(connection, organizationId);
  logger.info({ organizationId, use }, 'a tenant listens to the event log');
  const grant = tenantGrant(use, organizationId, keyHash);
  const nowMs = now();
  return admit(issuer, request, { ...grant, name: keyHash, nowMs, untilMs: nowMs + ADMITTED_MS });
}

/**
 * Where it is there already nothing changes: what was read stays read. One that was restored from a
 * backup begins where that left it.
 */
async function makeDurable(connection: JetStreamConnection, organizationId: string) {
  const { name, filter } = tenantDurable(organizationId);
  await ask(connection, DURABLE_MS, async () => {
    try {
      await connection.jsm.consumers.add(PUBLIC_STREAM, {
        durable_name: name,
        filter_subject: filter,
        ack_policy: 'explicit',
        deliver_policy: 'all',
      });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
    }
  });
}

/**
 * Ends the connections of revoked keys, those from before it began too, until the signal aborts.
 * Never throws.
 */
async function followRevocations(parts: CalloutParts, signal: AbortSignal): Promise<void> {
  const { log, logger, keys } = parts;
  const subjects = filters.organizations;
  const onMalformed = (poison: object) => logger.error(poison, 'malformed event');

  /** Ends those whose keys were revoked up to this sequence. */
  async function endUpTo(sequence: number): Promise<void> {
    await keys.reached(sequence);
    await endRevoked(parts);
    void endLatecomers(parts, signal);
  }
  async function follow(wentWell: () => void): Promise<void> {
    // Asked for before the look: what is revoked during that is followed.
    const after = await log.lastSequence(subjects);
    await endUpTo(after);
    for await (const batch of log.follow({ subjects, after, signal, onMalformed })) {
      const last = batch.findLast(({ type }) => type === 'organization.key-revoked');
      if (last !== undefined) await endUpTo(last.sequence);
      wentWell();
    }
  }
  await keepTrying(signal, follow, (error) =>
    logger.error({ err: error }, 'revoked keys are not followed; trying on'),
  );
}

async function endLatecomers(parts: CalloutParts, signal: AbortSignal): Promise<void> {
  try {
    await pause(LATECOMERS_MS, undefined, { signal });
    await endRevoked(parts);
  } catch (error) {
    if (!signal.aborted) parts.logger.warn({ err: error }, 'tenants were not looked through');
  }
}

/** Holds who is connected against the keys there are. */
async function endRevoked({ connection, keys, logger }: CalloutParts): Promise<void> {
  for (const tenant of await listTenants(connection))
    if (keys.organizationOf(tenant.keyHash) === null)
      await kick(connection, tenant).catch((error: unknown) =>
        logger.warn({ err: error }, 'the connection of a revoked key was not ended'),
      );
}
