import { JetStreamApiError } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import { filters, PUBLIC_STREAM } from '#events/subjects.ts';
import {
  AUTHORIZATION_REQUESTS,
  tenantDurable,
  tenantGrant,
  tenantUses,
} from '#events/tenant-subjects.ts';
import { WrittenByNewer } from '#src/kernel/errors.ts';
import { hashKey } from '#src/kernel/ids.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { JetStreamConnection } from '#src/kernel/event-store/jetstream/connection.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { requestWithRetry } from '#src/kernel/event-store/jetstream/request.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { createFailedAttempts, type FailedAttempts } from './failed-attempts.ts';
import { kick, listTenants } from './connections.jetstream.ts';
import { createKeyConnections, type KeyConnections } from './key-connections.ts';
import type { Issuer } from './nkey.ts';
import { admit, readRequest, refuse, type AuthorizationRequest } from './user-jwt.ts';

export type CalloutDependencies = {
  connection: JetStreamConnection;
  eventStore: EventStore;
  logger: Logger;
  issuer: Issuer;
  keys: {
    /** The organization of a key, by the key's SHA-256 in hex; null if no live key has it. */
    organizationOf(keyHash: string): string | null;
    /** Resolves once the organization's events up to this sequence are applied. */
    reached(sequence: number): Promise<void>;
  };
  /** Connections of one key at once. */
  connectionsPerKeyMax: number;
  now: () => number;
};

/** Servers share the requests among all processes that answer. */
const QUEUE = 'tenants';
/** Validity of an admission; then the server ends the connection and the client reconnects. */
const ADMITTED_MS = 12 * 60 * 60_000;
/**
 * Attempts with an unknown key that are refused with an answer, a minute; further ones get no
 * answer and end by the server's timeout. The bounds do not apply to attempts with a valid key.
 */
const FAILED_PER_ADDRESS_MAX = 30;
const FAILED_MAX = 1_000;
const DURABLE_MS = 2_000;
/** The server's code for a consumer of that name with another configuration. */
const CONSUMER_EXISTS = 10_148;
/** An admission under way when its key is revoked ends within this: servers wait 2 s for it. */
const LATECOMERS_MS = 2_500;

/**
 * Answers the NATS servers' auth callout. A tenant sends an API key as password and its use as user
 * name, and gets the permissions of `tenantGrant`; all other connections are refused. When a key is
 * revoked, its connections are ended at once, those that other processes admitted included.
 */
export async function answerCallouts(dependencies: CalloutDependencies): Promise<AsyncDisposable> {
  const { connection, logger, connectionsPerKeyMax: max, now } = dependencies;
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
  const following = followRevocations(dependencies, stop.signal);

  /** Never throws: a server refuses a connection without an answer, and the client retries. */
  async function reply(message: Msg): Promise<void> {
    const request = readRequest(message.string());
    if (request === null) return;
    try {
      const answer = await decide(dependencies, bounds, request);
      if (answer !== null) message.respond(answer);
    } catch (error) {
      logger.error({ err: error }, 'auth callout failed: no answer sent');
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
    logger.error({ err: error }, 'auth callout subscription failed; retrying'),
  );
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all([answering, following]);
    },
  };
}

type Bounds = { connections: KeyConnections; failed: FailedAttempts };

/** The answer to send; null if none is sent. */
async function decide(
  dependencies: CalloutDependencies,
  { connections, failed }: Bounds,
  request: AuthorizationRequest,
): Promise<string | null> {
  const { connection, logger, issuer, keys, now } = dependencies;
  const keyHash = hashKey(request.password);
  const organizationId = keys.organizationOf(keyHash);
  if (organizationId === null) {
    const { address } = request;
    const place = failed.note(address);
    if (place === 'first-beyond')
      logger.warn(
        { address },
        'too many attempts with an unknown key; not answered for the rest of this minute',
      );
    return place === 'answer' ? refuse(issuer, request, 'no such key') : null;
  }
  const use = tenantUses.find((one) => one === request.user);
  if (use === undefined)
    return refuse(issuer, request, `the user is one of ${tenantUses.join(', ')}`);
  if (!(await connections.take(keyHash))) {
    logger.warn({ organizationId }, 'tenant refused: connection limit of its key reached');
    return refuse(issuer, request, 'too many connections with this key');
  }
  if (use === 'durable') await makeDurable(connection, organizationId);
  logger.info({ organizationId, use }, 'tenant admitted');
  const grant = tenantGrant(use, organizationId, keyHash);
  return admit(issuer, request, { ...grant, name: keyHash, untilMs: now() + ADMITTED_MS });
}

/**
 * Creates the organization's durable consumer. An existing one keeps its position: one that was
 * restored from a backup goes on where the backup left it.
 */
async function makeDurable(connection: JetStreamConnection, organizationId: string) {
  const { name, filter } = tenantDurable(organizationId);
  await requestWithRetry(connection, DURABLE_MS, async () => {
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
 * Ends the connections of revoked keys until the signal aborts, of those revoked earlier too.
 * Never throws.
 */
async function followRevocations(
  dependencies: CalloutDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { eventStore, logger, keys } = dependencies;
  const subjects = filters.organizations;
  // A process that can read the event ends the connections.
  const onUnreadable = (poison: object) =>
    logger.warn(poison, 'unreadable event passed while following key revocations');

  /** Ends those whose keys were revoked up to this sequence. */
  async function endUpTo(sequence: number): Promise<void> {
    await keys.reached(sequence);
    await endRevoked(dependencies);
    void endLatecomers(dependencies, signal);
  }
  async function follow(wentWell: () => void): Promise<void> {
    // Read before the check, so that keys revoked during it are followed.
    const after = await eventStore.lastSequence();
    await endUpTo(after);
    for await (const batch of eventStore.subscribe({
      subjects,
      after,
      signal,
      onUnreadable,
    })) {
      const last = batch.findLast(({ type }) => type === 'organization.key-revoked');
      if (last !== undefined) await endUpTo(last.sequence);
      wentWell();
    }
  }
  await keepTrying(signal, follow, (error) =>
    logger.error({ err: error }, 'following key revocations failed; retrying'),
  );
}

async function endLatecomers(
  dependencies: CalloutDependencies,
  signal: AbortSignal,
): Promise<void> {
  await sleep(LATECOMERS_MS, signal);
  if (signal.aborted) return;
  try {
    await endRevoked(dependencies);
  } catch (error) {
    if (!signal.aborted)
      dependencies.logger.warn(
        { err: error },
        'checking tenant connections against revoked keys failed',
      );
  }
}

/** False, too, if this process cannot say: one of a newer version ends the connection. */
function isRevoked(keys: CalloutDependencies['keys'], keyHash: string): boolean {
  try {
    return keys.organizationOf(keyHash) === null;
  } catch (error) {
    if (error instanceof WrittenByNewer) return false;
    throw error;
  }
}

/** Ends every connection whose key is not live. */
async function endRevoked({ connection, keys, logger }: CalloutDependencies): Promise<void> {
  for (const tenant of await listTenants(connection))
    if (isRevoked(keys, tenant.keyHash))
      await kick(connection, tenant).catch((error: unknown) =>
        logger.warn({ err: error }, 'ending the connection of a revoked key failed'),
      );
}
