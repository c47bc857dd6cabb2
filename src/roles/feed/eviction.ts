import { STALL_MS } from './backfill.ts';
import type { Subscriber } from './subscriber.ts';

/** Whether the credential that a stream was opened with is still valid. */
export type IsAllowed = () => boolean | Promise<boolean>;

export type Eviction = Disposable & {
  /** A stream was opened. */
  begin(): void;
  /** Checks the organization's streams at the next tick: one of its credentials was revoked. */
  recheck(organizationId: string): void;
};

const TICK_MS = 1_000;
/** Tokens expire without an event: every stream is checked every 5 ticks. */
const CHECK_TICKS = 5;

/** Ends streams whose reader takes no bytes, and streams whose credential is no longer valid. */
export function startEviction(subscribers: ReadonlyMap<Subscriber, IsAllowed>): Eviction {
  /**
   * Organizations to check at every tick until the next full check: the authenticator may apply a
   * revocation later than the feed.
   */
  const suspects = new Set<string>();
  let ticks = 0;
  /** Runs while there are streams or suspects. */
  let ticking: NodeJS.Timeout | null = null;

  async function check(subscriber: Subscriber, isAllowed: IsAllowed): Promise<void> {
    try {
      if (!(await isAllowed())) subscriber.end('credential_revoked');
    } catch {
      // The authenticator is unavailable: checked again at the next full check.
    }
  }
  function tick(): void {
    ticks += 1;
    const isFullCheck = ticks % CHECK_TICKS === 0;
    const now = performance.now();
    for (const [subscriber, isAllowed] of subscribers) {
      if (now - (subscriber.fullSince() ?? now) > STALL_MS) subscriber.end('slow_reader');
      else if (isFullCheck || suspects.has(subscriber.subscription.organizationId))
        void check(subscriber, isAllowed);
    }
    if (!isFullCheck) return;
    suspects.clear();
    if (subscribers.size === 0) stop();
  }
  function begin(): void {
    ticking ??= setInterval(tick, TICK_MS);
  }
  function stop(): void {
    if (ticking !== null) clearInterval(ticking);
    ticking = null;
  }
  return {
    begin,
    recheck(organizationId) {
      suspects.add(organizationId);
      begin();
    },
    [Symbol.dispose]: stop,
  };
}
