import type { EventMetadata } from '#events/envelope.ts';
import type { SessionState, StopReason } from '#events/session.ts';
import {
  openSessions,
  organizationSessions,
  type SessionRow,
} from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { sessionKey, sessionView } from '#projections/session-view.ts';
import { pageMax } from '#projections/store/limits.ts';
import { readList } from '#projections/store/queries.ts';
import type { Views } from '#projections/store/views.ts';
import { isRejection } from '#src/kernel/errors.ts';
import type { CommandContext } from './handle-command.ts';
import { handleSessionCommand } from './handle-session-command.ts';

/** A browser session that ends with an MCP session. */
export type OwnedSession = SessionState & { owner: { mcpSessionId: string } };

/**
 * The organization's open sessions that end with an MCP session, from the read model.
 * @throws Unavailable
 */
export async function readOwnedSessions(
  views: Views,
  organizationId: string,
): Promise<OwnedSession[]> {
  const list = openSessions(organizationId);
  const rows = await readList<SessionRow>(views, projectionId(organizationSessions), list);
  const owned: OwnedSession[] = [];
  for (let from = 0; from < rows.length; from += pageMax) {
    const keys = rows.slice(from, from + pageMax).map(({ id }) => sessionKey(organizationId, id));
    for (const text of await views.readMany(projectionId(sessionView), keys)) {
      const state = text === null ? null : (JSON.parse(text) as SessionState);
      if (isOwned(state)) owned.push(state);
    }
  }
  return owned;
}

function isOwned(state: SessionState | null): state is OwnedSession {
  return state?.owner !== undefined && state.status !== 'stopping';
}

/**
 * Stops a browser session because its MCP session has ended; one that is ending stays as it is.
 * @throws Unavailable
 */
export async function stopOwnedSession(
  context: CommandContext,
  { organizationId, id }: { organizationId: string; id: string },
  { reason, note, metadata }: { reason: StopReason; note: string | null; metadata: EventMetadata },
): Promise<void> {
  const command = { type: 'StopSession', reason, now: context.now() } as const;
  const noted = note === null ? command : { ...command, note };
  const done = await handleSessionCommand(context, { organizationId, id }, noted, metadata);
  if (isRejection(done) && done.code !== 'SESSION_NOT_FOUND')
    throw new Error(`session ${id} was not stopped: ${done.code}`);
}
