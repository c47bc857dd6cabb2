import { isOf, type EventWithState, type RecordedOf } from '#events/events.ts';
import type { OrganizationState } from '#events/organization.ts';
import { filters, parseSubject } from '#events/subjects.ts';
import { keepTrying } from '#src/async/back-off.ts';
import { Unavailable, WrittenByNewer } from '#src/errors.ts';
import type { EventStore } from '#src/event-store/event-store.ts';
import { loadState, withState } from '#src/event-store/load-state.ts';
import { createStateCache } from '#src/event-store/state-cache.ts';
import type { Gateway } from '../gateway.ts';
import type { Logger } from '#src/telemetry/logger.ts';
import type { KeyDirectory } from './key-directory.ts';
import { holderOf } from './ticket.ts';

export type FollowedKeys = KeyDirectory & {
  /** Closes the connections of each key that an event says is revoked, until it is called. */
  closeWhenRevoked(gateway: Pick<Gateway, 'closeRevoked'>): () => void;
} & AsyncDisposable;

/**
 * Follows the organizations' keys from the end of the event store. An organization's state is read
 * once, from the leader, and kept current by its events; 2,000 are kept. A remembered key counts
 * only while events arrive: then a revocation would have been heard of. A key that is not
 * remembered as live is looked up at the leader: it may have been issued a moment ago.
 */
export async function followKeys(
  eventStore: EventStore,
  { isReceivingEvents, log }: { isReceivingEvents: () => boolean; log: Logger },
): Promise<FollowedKeys> {
  const known = createStateCache();
  const listeners = new Set<Pick<Gateway, 'closeRevoked'>>();
  const stop = new AbortController();
  let after = await eventStore.lastSequence();

  async function run(wentWell: () => void): Promise<void> {
    const batches = eventStore.subscribe({
      subjects: filters.organizations,
      after,
      signal: stop.signal,
      onUnreadable({ subject, sequence, kind, reason }) {
        log.error({ subject, kind, reason }, 'organization event passed by the gateway');
        const aggregate = parseSubject(subject)?.aggregate;
        if (aggregate !== undefined) known.set(aggregate, { state: null, sequence });
      },
    });
    for await (const batch of batches)
      for (const event of batch) {
        if (isOf('organization', event)) await apply(event);
        after = event.sequence;
        wentWell();
      }
  }
  async function apply(event: RecordedOf<'organization'>): Promise<void> {
    const { aggregate, sequence } = event;
    const state = (await readState(event))?.state ?? null;
    known.set(aggregate, { state, sequence });
    if (state === null) return;
    const liveHolders = new Set(state.keys.map(({ hash }) => holderOf(hash)));
    for (const gateway of listeners) gateway.closeRevoked(aggregate.organizationId, liveHolders);
  }
  /** Null: a newer version wrote the history. Connects ask the leader, and are refused with 503. */
  async function readState(
    event: RecordedOf<'organization'>,
  ): Promise<EventWithState<'organization'> | null> {
    try {
      return await withState<'organization'>(eventStore, event);
    } catch (error) {
      if (error instanceof Unavailable && !(error instanceof WrittenByNewer)) throw error;
      log.error({ err: error }, 'the history of an organization is unreadable; event passed');
      return null;
    }
  }
  // Retries without a limit: otherwise connections of a revoked key would stay open.
  const running = keepTrying(stop.signal, run, (error) =>
    log.error({ err: error }, 'following API keys failed; retrying'),
  );

  async function isLiveAtLeader(organizationId: string, holder: string): Promise<boolean> {
    const aggregate = { kind: 'organization', organizationId } as const;
    const loaded = await loadState<'organization'>(eventStore, aggregate, { fromLeader: true });
    known.set(aggregate, loaded);
    return has(loaded.state, holder);
  }
  return {
    isLive(organizationId, holder) {
      const remembered = known.get<'organization'>({ kind: 'organization', organizationId });
      if (isReceivingEvents() && has(remembered?.state ?? null, holder)) return true;
      return isLiveAtLeader(organizationId, holder);
    },
    closeWhenRevoked(gateway) {
      listeners.add(gateway);
      return () => listeners.delete(gateway);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

function has(organization: OrganizationState | null, holder: string): boolean {
  return organization?.keys.some(({ hash }) => holderOf(hash) === holder) ?? false;
}
