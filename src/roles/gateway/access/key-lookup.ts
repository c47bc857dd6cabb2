import { BoundedMap } from '#src/kernel/async/bounded-map.ts';
import { isOf, type RecordedOf } from '#events/events.ts';
import type { OrganizationState } from '#events/organization.ts';
import { filters, organizationIn } from '#events/subjects.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { isOutage } from '#src/kernel/errors.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';
import { loadState, withState } from '#src/kernel/event-store/load-state.ts';
import type { Gateway } from '../gateway.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { KeyDirectory } from './key-directory.ts';
import { isReceiving, type Reception } from './session-lookup.ts';
import { holderOf } from './ticket.ts';

export type FollowedKeys = KeyDirectory & {
  /** Closes the connections of each key that an event says is revoked, until it is called. */
  closeWhenRevoked(gateway: Pick<Gateway, 'closeRevoked'>): () => void;
} & AsyncDisposable;

/**
 * Follows the organizations' keys from the end of the event store. An organization's state is read
 * once, from the leader, and kept current by its events. A remembered key counts only while events
 * arrive and this reader gets on with them: its revocation would have arrived, too. A key that is
 * not remembered as live is looked up at the leader: it may have been issued a moment ago.
 */
export async function followKeys(
  eventStore: EventStore,
  { reception, log }: { reception: Reception; log: Logger },
): Promise<FollowedKeys> {
  const known = createLiveHolders();
  const listeners = new Set<Pick<Gateway, 'closeRevoked'>>();
  const stop = new AbortController();
  let after = await eventStore.lastSequence();
  /** Whether events cannot be read or applied: a revocation may be among them. */
  let isFailing = false;

  async function run(wentWell: () => void): Promise<void> {
    const batches = eventStore.subscribe({
      subjects: filters.organizations,
      after,
      signal: stop.signal,
      onPosition: () => (isFailing = false),
      onReceiving: (isHeard) => (isFailing ||= !isHeard),
      onUnreadable(event) {
        log.error(event, 'organization event passed by the gateway');
        known.set(organizationIn(event.subject) ?? '', event.sequence, null);
      },
    });
    for await (const batch of batches)
      for (const event of batch) {
        if (isOf('organization', event)) await apply(event);
        after = event.sequence;
        isFailing = false;
        wentWell();
      }
  }
  async function apply(event: RecordedOf<'organization'>): Promise<void> {
    const { organizationId } = event.aggregate;
    const state = await readState(event, eventStore, log);
    const holders = state === null ? null : holdersOf(state);
    // While this reader lags, the leader may have told of newer keys: their connections stay.
    const newest = known.set(organizationId, event.sequence, holders);
    if (newest === null) return;
    for (const gateway of listeners) gateway.closeRevoked(organizationId, newest);
  }
  // Retries without a limit: otherwise connections of a revoked key would stay open.
  const running = keepTrying(stop.signal, run, (error) => {
    isFailing = true;
    log.error({ err: error }, 'following API keys failed; retrying');
  });

  async function isLiveAtLeader(organizationId: string, holder: string): Promise<boolean> {
    const organization = { kind: 'organization', organizationId } as const;
    const leader = { fromLeader: true };
    const { state, sequence } = await loadState<'organization'>(eventStore, organization, leader);
    const newest = known.set(organizationId, sequence, holdersOf(state));
    return newest?.has(holder) ?? false;
  }
  return {
    isLive: (organizationId, holder) =>
      (!isFailing && isReceiving(reception) && known.has(organizationId, holder)) ||
      isLiveAtLeader(organizationId, holder),
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

/** Null: a newer version wrote the history. Connects ask the leader, and are refused with 503. */
async function readState(
  event: RecordedOf<'organization'>,
  eventStore: EventStore,
  log: Logger,
): Promise<OrganizationState | null> {
  try {
    return (await withState<'organization'>(eventStore, event)).state;
  } catch (error) {
    if (isOutage(error)) throw error;
    log.error({ err: error }, 'the history of an organization is unreadable; event passed');
    return null;
  }
}

function holdersOf(organization: OrganizationState | null): ReadonlySet<string> {
  return new Set(organization?.keys.map(({ hash }) => holderOf(hash)));
}

/** Of an organization with the most keys, 200, some 15 KB each. Beyond it the oldest is dropped. */
const ORGANIZATIONS_MAX = 2_000;

/** The live keys of organizations, each as of the newest sequence that was set. */
function createLiveHolders() {
  type Known = { sequence: number; holders: ReadonlySet<string> | null };
  const known = new BoundedMap<string, Known>(ORGANIZATIONS_MAX);
  return {
    has: (organizationId: string, holder: string): boolean =>
      known.get(organizationId)?.holders?.has(holder) ?? false,
    /**
     * Does nothing if a newer sequence is known.
     * @param holders null: unreadable
     * @returns the holders of the newest sequence
     */
    set(organizationId: string, sequence: number, holders: Known['holders']): Known['holders'] {
      const newer = known.get(organizationId);
      if (newer !== undefined && newer.sequence > sequence) return newer.holders;
      known.set(organizationId, { sequence, holders });
      return holders;
    },
  };
}
