import { addressesOf, type LinkKeys } from '#src/browsers/link/browser-link.ts';
import { newMetadata } from '#src/commands/metadata.ts';
import { loadCurrent } from '#src/kernel/event-store/load-state.ts';
import type { CommandContext } from '#src/commands/handle-command.ts';
import { handleSessionCommand } from '#src/commands/handle-session-command.ts';
import type { SessionEvents } from '#src/kernel/event-store/session-events.ts';
import type { RefOf } from '#events/events.ts';
import type { SessionState } from '#events/session.ts';
import { isFinal } from '#src/kernel/domain/session/session.ts';
import type { Gateway } from '../gateway.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import { holdOf } from './grant.ts';
import type { SessionDirectory } from './session-directory.ts';

/** Whether this process receives the ends of sessions. */
export type Reception = {
  isConnected: () => boolean;
  /** Time since the last sign of life of this process's reader of the event store. */
  eventsSilenceMs: () => number;
};

/**
 * A remembered state is believed for this long after the last sign of life: while no event comes, a
 * heartbeat does every 2 s, and has a second for its way. A process that is cut off connects to a
 * session that has ended for so much longer, if its browser still runs. No bound would be short
 * enough for an address, which another browser may have 0.2 s later: at each connect the browser's
 * identity decides about that (`cdp/own-browser.ts`).
 */
export const HEARD_WITHIN_MS = 3_000;

/** Whether what this process remembers is current, but for the last seconds. */
export function isReceiving({ isConnected, eventsSilenceMs }: Reception): boolean {
  return isConnected() && eventsSilenceMs() <= HEARD_WITHIN_MS;
}

/**
 * Looks sessions up. A session that has ended is believed from memory, and an active one while this
 * process receives events; otherwise the leader of the event store is asked, whose answer is never
 * older than an API response. A replica may lag without a bound, so none is asked.
 */
export function createSessionDirectory(
  { eventStore, stateCache }: Pick<CommandContext, 'eventStore' | 'stateCache'>,
  { reception, linkKeys }: { reception: Reception; linkKeys: LinkKeys },
): SessionDirectory {
  async function load(session: RefOf<'session'>) {
    const loaded = await loadCurrent(eventStore, session);
    if (loaded.state !== null) stateCache?.set(session, loaded);
    return loaded;
  }
  function mayBelieve({ status }: SessionState, fromLeader: boolean): boolean {
    if (isFinal(status)) return true; // it does not change any more
    if (status !== 'active' || fromLeader) return false;
    return isReceiving(reception);
  }
  return {
    async find(organizationId, id, { fromLeader = false } = {}) {
      const session = { kind: 'session', organizationId, id } as const;
      const remembered = stateCache?.get<'session'>(session);
      const isBelieved = remembered?.state && mayBelieve(remembered.state, fromLeader);
      const { state, sequence } = isBelieved ? remembered : await load(session);
      if (state === null) return null;
      const { accessEpoch = 0, shares = [], handoff } = state;
      const last = handoff === undefined ? {} : { handoff };
      const granted = { accessEpoch, sequence, shares, ...last };
      if (state.status === 'active') {
        const { cdp, vnc, webdriver = null } = addressesOf(state.workload, linkKeys);
        const screen = state.browser.headless === true ? null : vnc;
        return { status: 'active', ...granted, cdp, vnc: screen, webdriver };
      }
      return state.endedReason === null
        ? { status: state.status, ...granted }
        : { status: 'ended', ...granted, reason: state.endedReason };
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

/** Records the use of a share at each connection by its address; like `createAccessRecorder`. */
export function createShareRecorder(context: CommandContext, log: Logger) {
  return function record(
    { organizationId, sessionId: id }: { organizationId: string; sessionId: string },
    shareId: string,
  ): void {
    const command = { type: 'RecordShareUse', shareId, now: context.now() } as const;
    const metadata = newMetadata('gateway/vnc');
    void handleSessionCommand(context, { organizationId, id }, command, metadata).catch(
      (error: unknown) =>
        log.warn({ err: error, sessionId: id, shareId }, 'failed to record the use of a share'),
    );
  };
}

/**
 * Closes a session's connections as soon as an event says that it ends, those with older addresses
 * as soon as one says that they were replaced, and those of a share or a hand-off as soon as one
 * says that it was revoked or is over. Tells the gateway which person holds a session.
 */
export function closeWhenEnded(
  sessionEvents: SessionEvents,
  gateway: Pick<Gateway, 'closeSession' | 'closeRotated' | 'closeGrant' | 'hold'>,
): () => void {
  return sessionEvents.watchAll((event) => {
    const { state } = event;
    const { organizationId, id, handoff } = state;
    if (event.type === 'session.share-revoked')
      gateway.closeGrant(organizationId, id, { kind: 'share', id: event.data.shareId });
    // The person's connections end before automation goes on.
    if (handoff?.status === 'completed' || handoff?.status === 'expired')
      gateway.closeGrant(organizationId, id, { kind: 'handoff', id: handoff.id });
    gateway.hold(organizationId, id, holdOf(state), event.sequence);
    // Every event carries the epoch: if one is skipped as unreadable, the next one closes them.
    if (state.accessEpoch !== undefined)
      gateway.closeRotated(state.organizationId, state.id, state.accessEpoch);
    if (state.status !== 'stopping' && !isFinal(state.status)) return;
    gateway.closeSession(state.organizationId, state.id, state.endedReason ?? 'ended');
  });
}
