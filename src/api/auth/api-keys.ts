import { setTimeout as pause } from 'node:timers/promises';
import { STATE_UNKNOWN } from '#events/codec.ts';
import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import { createAccess, type Access } from '#projections/access.ts';
import { keepTrying } from '#src/async/back-off.ts';
import type { EventLog } from '#src/event-store/event-store.ts';
import { load } from '#src/event-store/load-state.ts';
import type { TierLimits, Tiers } from '#src/domain/organization/tiers.ts';
import type { Log } from '#src/telemetry/logger.ts';
import type { Caller } from './authenticate.ts';

/** Who holds which key, as the log has it: in memory, so that a request asks nobody. */
export type Credentials = {
  /** By the key's SHA-256 in hex; null where no live key has it. */
  holderOf(keyHash: string): Caller | null;
  /** What a registered organization's tier allows; null where it is not registered. */
  limitsOf(organizationId: string): TierLimits | null;
  /** Resolves once an organization's event of this sequence counts here; after a second anyway. */
  reached(sequence: number): Promise<void>;
} & AsyncDisposable;

/** The log's follower is milliseconds behind; a request waits no longer for it. */
const REACHED_WITHIN_MS = 1_000;

/**
 * Reads all keys there are, then follows: a revoked key is refused as soon as its event arrives.
 * Works on while the read model is away, and on its last state while the log is.
 */
export async function followCredentials(
  log: EventLog,
  tiers: Tiers,
  logger: Log,
): Promise<Credentials> {
  const access = createAccess();
  const stop = new AbortController();
  const applied = createMark();

  let after = 0;

  async function run(wentWell: () => void): Promise<void> {
    const batches = log.follow({
      subjects: filters.organizations,
      after,
      signal: stop.signal,
      onMalformed(poison) {
        logger.error(poison, 'malformed event of an organization');
        // Nobody waits for what will never come; those read before it are applied first.
        setImmediate(() => applied.move(poison.sequence));
      },
    });
    for await (const batch of batches)
      for (const event of batch) {
        await apply(log, access, event);
        after = event.sequence;
        applied.move(after);
        wentWell();
      }
  }
  const upTo = await log.lastSequence(filters.organizations);
  // Without end, so that a revoked key does not stay good for ever.
  const running = keepTrying(stop.signal, run, (error) =>
    logger.error({ err: error }, 'credentials are not followed; trying again'),
  );
  await applied.reached(upTo);

  function holderOf(keyHash: string): Caller | null {
    const holder = access.byKeyHash(keyHash);
    if (holder === null) return null;
    const { organizationId, role, userId, tier } = holder;
    return { organizationId, role, userId, limits: tiers[tier] };
  }
  function limitsOf(organizationId: string): TierLimits | null {
    const organization = access.organization(organizationId);
    return organization === null ? null : tiers[organization.tier];
  }
  async function reached(sequence: number): Promise<void> {
    const late = pause(REACHED_WITHIN_MS, undefined, { ref: false });
    await Promise.race([applied.reached(sequence), late]);
  }
  async function dispose(): Promise<void> {
    stop.abort();
    await running;
  }
  return { holderOf, limitsOf, reached, [Symbol.asyncDispose]: dispose };
}

/** A state that another version of the fold wrote is not trusted: the history is folded. */
async function apply(log: EventLog, access: Access, event: RecordedEvent): Promise<void> {
  if (event.aggregate.kind !== 'organization' || (event.state as unknown) !== STATE_UNKNOWN)
    return access.apply(event);
  const { state } = await load<'organization'>(log, event.aggregate, { fromLeader: true });
  if (state !== null) access.apply({ ...event, state } as RecordedEvent);
}

/** A position that only grows, and who waits for it. */
function createMark() {
  let position = 0;
  const waiting = new Set<{ sequence: number; resolve: () => void }>();
  return {
    move(to: number): void {
      position = Math.max(position, to);
      for (const one of waiting)
        if (one.sequence <= position) {
          waiting.delete(one);
          one.resolve();
        }
    },
    /** Resolves when it is there. */
    reached(sequence: number): Promise<void> {
      if (sequence <= position) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add({ sequence, resolve });
      return promise;
    },
  };
}
