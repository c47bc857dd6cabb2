import type { EventMetadata } from '#events/envelope.ts';
import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import type { FastifyRequest } from 'fastify';
import type { ArchiveReport } from '#src/commands/operator/archive-report.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { ReaderWatch } from '#src/kernel/telemetry/reader-watch.ts';
import type { Tiers } from '#src/kernel/domain/organization/tiers.ts';
import { newId } from '#src/kernel/ids.ts';
import type { DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import type { OwnAddresses } from '#src/kernel/host/own-addresses.ts';
import type { ServerQuestions } from '#src/kernel/messaging/server-questions.ts';
import type { ObjectStore } from '#src/kernel/objects/object-store.ts';
import { loadCurrent } from '#src/kernel/event-store/load-state.ts';
import type { QueueBounds } from '#src/commands/capacity.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { Metrics } from '#src/kernel/telemetry/metrics.ts';
import type { Authenticate, Caller } from './auth/authenticate.ts';
import type { DashboardFiles } from './dashboard/dashboard-files.ts';
import type { EventFeed } from './event-stream/event-feed.ts';
import type { Credentials } from './auth/api-keys.ts';
import type { HealthMonitor } from './health/health-monitor.ts';
import type { ProxyPasswordSealer } from './schemas/egress.ts';
import type { Addresses } from './schemas/present-session.ts';
import type { QueuePace } from './sessions/queue-place.ts';
import { doorOf } from './http/door.ts';
import type { Transfers } from './http/transfers.ts';
import { traceparentOf } from './http/trace-requests.ts';

/** What the operator's routes need beside the others' dependencies. */
export type OperatorParts = {
  /** The read models' stores without the guard of monotonic reads. */
  stores: Views & StoreMaintenance;
  deadLetters: DeadLetterStore;
  tiers: Tiers;
  /** Has a line of each decision that leaves no event. */
  log: Pick<Logger, 'info'>;
  /** Verifies the archived part of the log: what `bss archive verify` says. */
  verifyArchive: () => Promise<ArchiveReport>;
};

/** The dependencies of the routes. */
export type ApiDependencies = {
  context: CommandContext;
  views: Views;
  sessionEvents: SessionEvents;
  addresses: Addresses;
  /** Encrypts the passwords of sessions' proxies. */
  proxyPasswords: ProxyPasswordSealer;
  health: HealthMonitor;
  readers: Pick<ReaderWatch, 'silences'>;
  /** When the sessions of a list begin, by their end; null: no session is archived. */
  completeFrom: () => string | null;
  /** How fast waiting sessions get their browsers. */
  pace: QueuePace;
  /** How long a create waits for its browser. */
  createWaitMs: number;
  queue: QueueBounds;
  /** The longest time that a request waits for a server. */
  queueTimeoutMs: number;
  maxLifetimeMs: number;
  /** Lets a key command wait until this process has applied the change. */
  credentials: Pick<Credentials, 'reached'>;
  /** Screenshots and folders of sessions, by the servers that run them. */
  serverQuestions: Pick<ServerQuestions, 'ask'>;
  /** What is in files, segments of recordings, archives of profiles. */
  objects: ObjectStore;
  /** The uploads and downloads of this process that are under way. */
  transfers: Transfers;
  /** What no connection that a caller asks for may lead to. */
  ownAddresses: Pick<OwnAddresses, 'isOwnHost'>;
  /** How long files are kept after the end of their session. */
  filesRetainMs: number;
  /** `http://` or `https://` address by which this process reaches a gateway. */
  gatewayUrl: string;
  feed: EventFeed;
  metrics: Pick<Metrics, 'createPhase' | 'text'>;
  /** The bearer token of the metrics; null: only clients on this machine may read them. */
  metricsToken: string | null;
  /** Names of this machine in the configuration, by which a client on it may read its health. */
  ownHosts: readonly string[];
  /** What operators may see and change beside. */
  operator: OperatorParts;
  /** Checks whether the credential of an open stream is still valid. */
  authenticate: Authenticate;
  dashboard: DashboardFiles;
  log: Pick<Logger, 'info' | 'warn'>;
};

/** A caller's request as the cause of events. */
export function requestMetadata(request: FastifyRequest, caller: Caller): EventMetadata {
  const traceparent = traceparentOf(request);
  return {
    actor: { kind: 'user', id: caller.userId, ...doorOf(request) },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** A request of an operator as the cause of events; OPERATOR_TOKEN does not tell who it is. */
export function operatorRequestMetadata(request: FastifyRequest): EventMetadata {
  const traceparent = traceparentOf(request);
  return {
    actor: { kind: 'operator', id: OPERATOR_ID },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}
export const OPERATOR_ID = 'api';

/**
 * The session as the event store has it now; null if the organization has no session of that id.
 */
export async function loadSession(
  context: CommandContext,
  organizationId: string,
  id: string,
): Promise<{ state: SessionState; sequence: number } | null> {
  if (!isId(id)) return null;
  const session = { kind: 'session', organizationId, id } as const;
  const { state, sequence } = await loadCurrent(context.eventStore, session);
  return state === null ? null : { state, sequence };
}
