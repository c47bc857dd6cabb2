import type { Cause } from '#events/envelope.ts';
import type { SessionState } from '#events/session.ts';
import { isId } from '#events/subjects.ts';
import type { Views } from '#projections/store/views.ts';
import type { FastifyRequest } from 'fastify';
import { newId } from '#src/ids.ts';
import { loadSettled } from '#src/event-store/load-state.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import type { Tail } from '#src/event-store/session-events.ts';
import type { Metrics } from '#src/telemetry/metrics.ts';
import type { Authenticate, Caller } from './auth/authenticate.ts';
import type { EventFeed } from './event-stream/event-stream.ts';
import type { Credentials } from './auth/api-keys.ts';
import type { HealthMonitor } from './health/health-monitor.ts';
import type { Addresses } from './schemas/present-session.ts';
import type { QueuePace } from './sessions/queue-place.ts';
import { traceparentOf } from './http/trace-requests.ts';

/** What the routes are made of. */
export type ApiParts = {
  desk: Desk;
  views: Views;
  tail: Tail;
  addresses: Addresses;
  health: HealthMonitor;
  /** How fast those who wait for a browser are served. */
  pace: QueuePace;
  /** How long a create waits for its browser. */
  createWaitMs: number;
  /** Requests that may wait beyond what the servers have room for. */
  queueMax: number;
  /** The longest that a request waits for a server. */
  queueTimeoutMs: number;
  maxLifetimeMs: number;
  /** So that a command's answer can wait until this process lets in, or not, whom it says. */
  credentials: Pick<Credentials, 'reached'>;
  feed: EventFeed;
  metrics: Pick<Metrics, 'createPhase' | 'text'>;
  /** Who has it may read the metrics; null: who is on this machine. */
  metricsToken: string | null;
  /** Whether the credential of a stream that is open is still good. */
  authenticate: Authenticate;
};

/** A caller's request as the cause of events. */
export function causeOf(request: FastifyRequest, caller: Caller): Cause {
  const traceparent = traceparentOf(request);
  return {
    actor: { kind: 'user', id: caller.userId },
    commandId: newId('cmd'),
    correlationId: newId('cor'),
    causationId: null,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** The session as the log has it now; null where the organization has none of that id. */
export async function loadSession(
  desk: Desk,
  organizationId: string,
  id: string,
): Promise<{ state: SessionState; sequence: number } | null> {
  if (!isId(id)) return null;
  const session = { kind: 'session', organizationId, id } as const;
  const { state, sequence } = await loadSettled(desk.log, session);
  return state === null ? null : { state, sequence };
}
