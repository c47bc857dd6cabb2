import type { EventMetadata } from '#events/envelope.ts';
import type { SessionFilter } from '#events/organization.ts';
import type { SessionStatus } from '#events/session.ts';
import { isRejection, Unavailable, type ErrorName, type Rejection } from '#src/kernel/errors.ts';
import { newId } from '#src/kernel/ids.ts';
import { decideOrganization } from '#src/kernel/domain/organization/organization.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import { handleCommand, type CommandContext } from './handle-command.ts';
import { handleSessionCommand } from './handle-session-command.ts';

/** Stops under way at once: the ledger queue appends those that meet there together. */
const AT_ONCE = 32;

export type StopSessions = {
  organizationId: string;
  filter: SessionFilter & { status?: SessionStatus };
  ids: readonly string[];
  note: string | undefined;
  metadata: EventMetadata;
  /** No stop begins after it has aborted. */
  late: AbortSignal;
};

export type SessionsStopped = {
  /** The sessions that are stopping or have ended, by this call or by another cause. */
  stopped: string[];
  /** The sessions that this call did not stop; a repeated one may. */
  failed: { id: string; error: ErrorName }[];
  /** Sequence of the last event that was appended; 0: none. */
  sequence: number;
};

/**
 * Stops several sessions: first one event of the organization that joins them, then each session's
 * own events with that one as their cause. Each stop decides on the session's state: one that has
 * left the status or the labels of the filter by then goes on, and is neither stopped nor failed.
 */
export async function stopSessions(
  context: CommandContext,
  asked: StopSessions,
): Promise<SessionsStopped | Rejection> {
  const { ids, metadata } = asked;
  const joined = await join(context, asked);
  if (isRejection(joined)) return joined;
  const cause = { ...metadata, causationId: joined.eventId };
  const waiting = ids.values();
  const stopped = new Set<string>();
  const failed: SessionsStopped['failed'] = [];
  let last = 0;
  async function stopSome(): Promise<void> {
    for (const id of waiting) {
      const outcome = asked.late.aborted
        ? 'UNAVAILABLE'
        : await stopOne(context, asked, id, { ...cause, commandId: newId('cmd') });
      if (typeof outcome === 'string') failed.push({ id, error: outcome });
      else if (outcome.isEnding) stopped.add(id);
      if (typeof outcome !== 'string') last = Math.max(last, outcome.sequence);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, stopSome));
  return { stopped: ids.filter((id) => stopped.has(id)), failed, sequence: last };
}

/** Appends the event that joins the stops. */
async function join(
  context: CommandContext,
  { organizationId, filter, ids, note, metadata }: StopSessions,
): Promise<{ eventId: string | null } | Rejection> {
  const organization = { kind: 'organization', organizationId } as const;
  const command = {
    type: 'StopSessions',
    filter,
    sessions: ids.length,
    by: metadata.actor.id,
    ...(note === undefined ? {} : { note }),
  } as const;
  const joined = await handleCommand<'organization'>(
    context,
    organization,
    (state) => decideOrganization(command, state),
    metadata,
  );
  if (isRejection(joined) || joined.eventId !== null) return joined;
  // The answer of the append was lost, and the event had been stored.
  for await (const event of context.eventStore.history<'organization'>(organization))
    if (event.metadata.commandId === metadata.commandId) return { eventId: event.id };
  return { eventId: null };
}

/** The name of the error, if the session could not be stopped. */
async function stopOne(
  context: CommandContext,
  { organizationId, filter, note }: StopSessions,
  id: string,
  metadata: EventMetadata,
): Promise<{ isEnding: boolean; sequence: number } | ErrorName> {
  const { status, labels } = filter;
  const command = {
    type: 'StopSession',
    reason: 'user',
    now: context.now(),
    ...(note === undefined ? {} : { note }),
    onlyIf: { ...(status && { status }), ...(labels && { labels }) },
  } as const;
  try {
    const handled = await handleSessionCommand(context, { organizationId, id }, command, metadata);
    if (isRejection(handled)) return handled.code;
    const { state, sequence } = handled;
    return { isEnding: state.status === 'stopping' || isFinal(state.status), sequence };
  } catch (error) {
    // The other sessions are stopped all the same.
    if (error instanceof Unavailable) return 'UNAVAILABLE';
    throw error;
  }
}
