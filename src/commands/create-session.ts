import type { EventMetadata } from '#events/envelope.ts';
import type { SessionState } from '#events/session.ts';
import type { Views } from '#projections/store/views.ts';
import { nextTurn } from '#src/kernel/async/sleep.ts';
import { isRejection, type Rejection } from '#src/kernel/errors.ts';
import type { CreateSession } from '#src/kernel/domain/session/commands.ts';
import type { SessionIdentity } from '#src/kernel/domain/session/session.ts';
import { loadCurrent } from '#src/kernel/event-store/load-state.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { Span } from '#src/kernel/telemetry/tracer.ts';
import { capacityRefusal, type QueueBounds } from './capacity.ts';
import type { CommandContext } from './handle-command.ts';
import { handleSessionCommand } from './handle-session-command.ts';
import { untilReadable } from './read-your-writes.ts';
import type { WantedProfile } from './session-profile.ts';
import { watchSession } from './session-outcome.ts';

/** What a create needs beside the event store. */
export type CreateDependencies = {
  context: CommandContext;
  views: Views;
  /** The sessions' events as this process receives them. */
  sessionEvents: SessionEvents;
  queue: QueueBounds;
};

export type CreateRequest = {
  identity: SessionIdentity;
  command: CreateSession;
  metadata: EventMetadata;
  limits: { concurrentSessions: number };
  /** The profile that its browser begins with; absent or null: none. */
  profile?: WantedProfile | null;
  /** The caller's rate limit: null, or the reason to refuse the request. Never rejects. */
  admitted: Promise<Rejection | null>;
  /** How long to wait for the browser, in milliseconds; 0: not at all. */
  waitMs: number;
  /** Ends the wait for the browser early; the session is created all the same. */
  signal?: AbortSignal;
  /**
   * Called once with the session that the result will have, while the read model catches up: the
   * caller can render its answer meanwhile.
   */
  whenSettled?: (state: SessionState) => void;
  /** The span of the request, if it is traced. */
  span: Span | null;
};

/** The session as of the newest event seen, and how the request went. */
export type CreateResult = {
  state: SessionState;
  /** False if an earlier request with the same id had created the session. */
  isChanged: boolean;
  /** warm: its browser had waited; cold: one was launched for it; null: it has none yet. */
  start: 'cold' | 'warm' | null;
  phases: CreatePhases;
};

/** When each step of a create was done, by performance.now(); null: not yet, or unknown. */
export type CreatePhases = {
  admittedAt: number;
  acceptedAt: number;
  assignedAt: number | null;
  activatedAt: number | null;
  settledAt: number;
  readableAt: number;
};

/**
 * Creates a session: checks that there is room, accepts, counts and charges the session in one
 * append, waits for its browser, and until reads show the result.
 * @throws Unavailable if the event store does not answer
 */
export async function handleCreateSession(
  { context, views, sessionEvents, queue }: CreateDependencies,
  request: CreateRequest,
): Promise<CreateResult | Rejection> {
  const { identity, command, metadata, limits, profile = null, admitted, waitMs, span } = request;
  using ledgerQueues = context.ledgerQueues.announce(identity.organizationId);
  // The rate limit's count and the read of the servers' room share a round trip to Redis.
  const [refused, full] = await Promise.all([
    admitted,
    capacityRefusal(views, queue, identity.organizationId, command.egress !== undefined),
  ]);
  if (refused !== null) return refused;
  if (full !== null && !(await isRepeat(context, identity, command))) return full;

  using outcome = watchSession(sessionEvents, identity.id);
  const admittedAt = performance.now();
  const appending = span?.begin('append session.requested');
  const announced = { ...context, ledgerQueues };
  const handled = await handleSessionCommand(
    announced,
    identity,
    command,
    metadata,
    limits,
    profile,
  );
  // A repeated request submits nothing.
  ledgerQueues[Symbol.dispose]();
  if (isRejection(handled)) return handled;
  const acceptedAt = performance.now();
  appending?.end();

  span?.note({ 'bss.session_id': identity.id });
  const waiting = span?.begin('wait for browser');
  const { state, sequence } = await outcome.settled(handled, waitMs, request.signal);
  const settledAt = performance.now();
  const { assignedAt, activatedAt, activatedBy } = outcome.moments();
  if (activatedBy !== null) waiting?.link(activatedBy);
  waiting?.end();

  const readable = untilReadable(views, sequence);
  // A projector of this process sends its write first.
  await nextTurn();
  request.whenSettled?.(state);
  await readable;
  const readableAt = performance.now();
  const phases = { admittedAt, acceptedAt, assignedAt, activatedAt, settledAt, readableAt };
  return { state, isChanged: handled.isChanged, start: outcome.start(), phases };
}

/** A repeated request needs no new browser: its answer exists, however full the servers are. */
async function isRepeat(
  { eventStore }: CommandContext,
  { organizationId, id }: SessionIdentity,
  { fingerprint }: CreateSession,
): Promise<boolean> {
  if (fingerprint === null) return false;
  const session = { kind: 'session', organizationId, id } as const;
  return (await loadCurrent(eventStore, session)).state !== null;
}
