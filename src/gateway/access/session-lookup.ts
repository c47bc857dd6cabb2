import { addressesOf, type LinkKeys } from '#src/browser-link/browser-link.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { loadSettled } from '#src/event-store/load-state.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { SessionEvents } from '#src/event-store/session-events.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Gateway } from '../gateway.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import type { SessionDirectory } from './session-directory.ts';

/**
 * Looks sessions up in the event store. A cached state is used if it has a browser; otherwise each
 * connect reads the event store, so that the result is never older than an API response.
 */
export function createSessionDirectory(
  { eventStore, stateCache }: Pick<CommandContext, 'eventStore' | 'stateCache'>,
  linkKeys: LinkKeys,
): SessionDirectory {
  return {
    async find(organizationId, id) {
      const session = { kind: 'session', organizationId, id } as const;
      const remembered = stateCache?.get<'session'>(session)?.state ?? null;
      const state =
        remembered?.status === 'active'
          ? remembered
          : (await loadSettled(eventStore, session)).state;
      if (state === null) return null;
      if (state.status === 'active')
        return { status: 'active', ...addressesOf(state.workload, linkKeys) };
      return state.endedReason === null
        ? { status: 'waiting' }
        : { status: 'ended', reason: state.endedReason };
    },
  };
}

/** Delay of the record, so that the first commands of a connection go first. */
const RECORD_AFTER_MS = 250;

/**
 * Records that a session is in use, with the time of the call, 250 ms later. The domain limits the
 * records to one a minute. Never throws; pending records are lost when the process ends.
 */
export function createAccessRecorder(context: CommandContext, log: Logger) {
  return function record(
    { organizationId, sessionId: id }: { organizationId: string; sessionId: string },
    via: 'cdp' | 'vnc',
  ): void {
    const command = { type: 'RecordAccess', via, now: context.now() } as const;
    const metadata = newMetadata(`gateway/${via}`);
    const recordNow = () =>
      void handleSessionCommand(context, { organizationId, id }, command, metadata).catch(
        (error: unknown) =>
          log.warn({ err: error, sessionId: id }, 'failed to record session access'),
      );
    setTimeout(recordNow, RECORD_AFTER_MS).unref();
  };
}

/** Closes a session's connections as soon as an event says that it ends. */
export function closeWhenEnded(
  sessionEvents: SessionEvents,
  gateway: Pick<Gateway, 'closeSession'>,
): () => void {
  return sessionEvents.watchAll(({ state }) => {
    if (state.status !== 'stopping' && !isFinal(state.status)) return;
    gateway.closeSession(state.organizationId, state.id, state.endedReason ?? 'ended');
  });
}
