import { UnknownEvent } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { filters, organizationIn } from '#events/subjects.ts';
import { createAccess, type Access } from '#projections/access.ts';
import { keepTrying } from '#src/kernel/async/back-off.ts';
import { createNotifier } from '#src/kernel/async/notifier.ts';
import { Unavailable, WrittenByNewer } from '#src/kernel/errors.ts';
import type { EventStore, UnreadableEvent } from '#src/kernel/event-store/event-store.ts';
import { loadState } from '#src/kernel/event-store/load-state.ts';
import type { TierLimits, Tiers } from '#src/kernel/domain/organization/tiers.ts';
import type { Logger } from '#src/kernel/telemetry/logger.ts';
import type { Caller } from './authenticate.ts';

/**
 * The live API keys and their organizations, from the event store. They are held in memory, so that
 * authentication needs no round trip.
 */
export type Credentials = {
  /**
   * By the key's SHA-256 in hex; null if no live key has this hash.
   * @throws Unavailable('event-log') if revocations have not been heard of for 30 s; WrittenByNewer
   * if this build cannot read an event of the organization, which may have revoked the key
   */
  holderOf(keyHash: string): Caller | null;
  /**
   * The limits of a registered organization's tier; null if it is not registered.
   * @throws WrittenByNewer
   */
  limitsOf(organizationId: string): TierLimits | null;
  /**
   * Resolves once an organization's event of this sequence is applied here, or after one second.
   */
  reached(sequence: number): Promise<void>;
} & AsyncDisposable;

/**
 * A revoked key is refused within 2 s by a process that receives events. One that does not must not
 * accept it for ever, so it accepts no key after this long.
 */
export const DEAF_AFTER_MS = 30_000;
/** The subscription is milliseconds behind; a request waits at most this long for it. */
const REACHED_WITHIN_MS = 1_000;

/** How the credentials know that they hear of revocations. */
export type Hearing = {
  /** Time since the last sign of life of this process's reader of the event store. */
  eventsSilenceMs: () => number;
  /** A monotonic clock in milliseconds; default performance.now. */
  now?: () => number;
};

/**
 * Reads all keys, then subscribes: a revoked key is refused as soon as its event arrives. Works
 * without the read model. While the event store is unavailable it works with the last known state,
 * for `DEAF_AFTER_MS`.
 */
export async function followCredentials(
  eventStore: EventStore,
  tiers: Tiers,
  logger: Logger,
  { eventsSilenceMs, now = () => performance.now() }: Hearing,
): Promise<Credentials> {
  const access = createAccess();
  const readable = createReadable(eventStore, access, logger);
  const stop = new AbortController();
  const notifier = createNotifier();
  /** The sequence up to which events are applied, or were found unreadable. */
  let applied = 0;
  let after = 0;
  /** Since when organization events cannot be read or applied; null while they are. */
  let failingSince: number | null = null;

  function requireHearing(): void {
    const failingMs = failingSince === null ? 0 : now() - failingSince;
    if (Math.max(failingMs, eventsSilenceMs()) > DEAF_AFTER_MS)
      throw new Unavailable('event-log', new Error('revoked keys are not heard of'));
  }
  function moveTo(sequence: number): void {
    failingSince = null;
    applied = Math.max(applied, sequence);
    notifier.notify();
  }
  const isApplied = (sequence: number) => applied >= sequence;
  async function appliedUpTo(sequence: number, signal: AbortSignal): Promise<void> {
    while (!isApplied(sequence) && !signal.aborted) await notifier.wait(signal);
  }
  async function run(wentWell: () => void): Promise<void> {
    const batches = eventStore.subscribe({
      subjects: filters.organizations,
      after,
      signal: stop.signal,
      // Passes unreadable events, too: callers that wait for one of them go on.
      onPosition: moveTo,
      onUnreadable: readable.pass,
    });
    for await (const batch of batches)
      for (const event of batch) {
        await readable.apply(event);
        after = event.sequence;
        moveTo(after);
        wentWell();
      }
  }
  const upTo = await eventStore.lastSequence();
  // Retries without a limit: otherwise a revoked key would stay valid.
  const running = keepTrying(stop.signal, run, (error) => {
    failingSince ??= now();
    logger.error({ err: error }, 'following API keys failed; retrying');
  });
  await appliedUpTo(upTo, stop.signal);

  function holderOf(keyHash: string): Caller | null {
    requireHearing();
    const holder = access.byKeyHash(keyHash);
    if (holder === null) return null;
    const { organizationId, role, userId, tier } = holder;
    readable.require(organizationId);
    return { organizationId, role, userId, keyHash, limits: tiers[tier] };
  }
  function limitsOf(organizationId: string): TierLimits | null {
    readable.require(organizationId);
    const organization = access.organization(organizationId);
    return organization === null ? null : tiers[organization.tier];
  }
  const reached = (sequence: number) =>
    appliedUpTo(sequence, AbortSignal.timeout(REACHED_WITHIN_MS));
  const dispose = () => {
    stop.abort();
    return running;
  };
  return { holderOf, limitsOf, reached, [Symbol.asyncDispose]: dispose };
}

/**
 * Knows the organizations with an event that this build cannot read, and no readable state after
 * it. Their keys are not accepted here: the event may have revoked them. A newer process accepts
 * them.
 */
function createReadable(eventStore: EventStore, access: Access, logger: Logger) {
  const unreadable = new Map<string, WrittenByNewer>();
  return {
    async apply(event: RecordedEvent): Promise<void> {
      const { aggregate } = event;
      const organizationId = 'organizationId' in aggregate ? aggregate.organizationId : '';
      try {
        await apply(eventStore, access, event);
        unreadable.delete(organizationId);
      } catch (error) {
        if (!(error instanceof WrittenByNewer)) throw error;
        unreadable.set(organizationId, error);
      }
    },
    pass: (poison: UnreadableEvent): void => {
      const organizationId = organizationIn(poison.subject);
      if (poison.kind === 'malformed' || organizationId === null)
        return logger.error(poison, 'malformed organization event skipped');
      unreadable.set(organizationId, new WrittenByNewer(new UnknownEvent(poison.reason)));
      logger.warn(poison, 'organization event of a newer version: its keys are not accepted here');
    },
    /** @throws WrittenByNewer */
    require(organizationId: string): void {
      const error = unreadable.get(organizationId);
      if (error !== undefined) throw error;
    },
  };
}

/** If another version of the fold wrote the state, it is not used: the history is folded. */
async function apply(eventStore: EventStore, access: Access, event: RecordedEvent): Promise<void> {
  if (event.aggregate.kind !== 'organization' || event.state !== null) return access.apply(event);
  const { state } = await loadState<'organization'>(eventStore, event.aggregate, {
    fromLeader: true,
  });
  if (state !== null) access.apply({ ...event, state } as RecordedEvent);
}
