import type { RecordedOf } from '#events/events.ts';
import { causeBy } from '#src/commands/metadata.ts';
import { loadSettled } from '#src/event-store/load-state.ts';
import type { Desk } from '#src/commands/handle-command.ts';
import { handleSession } from '#src/commands/handle-session-command.ts';
import type { Tail } from '#src/event-store/session-events.ts';
import { isFinal } from '#src/domain/session/session.ts';
import type { Gateway } from '../gateway.ts';
import type { GatewayLog } from '../gateway-log.ts';
import type { SessionDirectory } from './session-directory.ts';

/**
 * The directory as the log has it: what has come to this process already where that has a browser,
 * else one read a connect, so that it is never behind what a caller was told.
 */
export function createSessionDirectory({ log, recent }: Desk): SessionDirectory {
  return {
    async find(organizationId, id) {
      const session = { kind: 'session', organizationId, id } as const;
      const remembered = recent?.of<'session'>(session)?.state ?? null;
      const state =
        remembered?.status === 'active' ? remembered : (await loadSettled(log, session)).state;
      if (state === null) return null;
      if (state.status === 'active')
        return { status: 'active', cdp: state.workload.cdp, vnc: state.workload.vnc };
      return state.endedReason === null
        ? { status: 'waiting' }
        : { status: 'ended', reason: state.endedReason };
    },
  };
}

/** A connect's first commands go before the record of it. */
const RECORD_AFTER_MS = 250;

/**
 * Records that a session is in use, as of the moment it is called, a little later. The decision
 * itself keeps it to once a minute. Never throws; what is not recorded when the process ends is
 * lost.
 */
export function createAccessRecorder(desk: Desk, log: GatewayLog) {
  return function record(
    { organizationId, sessionId: id }: { organizationId: string; sessionId: string },
    via: 'cdp' | 'vnc',
  ): void {
    const command = { type: 'RecordAccess', via, now: desk.now() } as const;
    const cause = causeBy(`gateway/${via}`);
    const recordNow = () =>
      void handleSession(desk, { organizationId, id }, command, cause).catch((error: unknown) =>
        log.warn({ err: error, sessionId: id }, 'an access was not recorded'),
      );
    setTimeout(recordNow, RECORD_AFTER_MS).unref();
  };
}

/** Cuts a session's connections as soon as the log says that it ends. */
export function closeWhenEnded(tail: Tail, gateway: Pick<Gateway, 'closeSession'>): () => void {
  return tail.watchAll(({ state }: RecordedOf<'session'>) => {
    if (state.status !== 'stopping' && !isFinal(state.status)) return;
    gateway.closeSession(state.organizationId, state.id, state.endedReason ?? 'ended');
  });
}
