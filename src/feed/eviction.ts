import { STALL_MS } from './backfill.ts';
import type { Client } from './subscriber.ts';

/** Whether the credential that a stream was opened with is still good. */
export type IsAllowed = () => boolean | Promise<boolean>;

export type Patrol = Disposable & {
  /** A credential of the organization was revoked: its clients are looked at at once. */
  suspect(organizationId: string): void;
};

const TICK_MS = 1_000;
/** Credentials run out without a word: all are looked at every so many ticks. */
const CHECK_TICKS = 5;

/** Ends the streams whose reader takes nothing, and those whose credential is no longer good. */
export function startPatrol(clients: ReadonlyMap<Client, IsAllowed>): Patrol {
  /** Until the next full check: who authenticates may hear of a revocation later than the feed. */
  const suspects = new Set<string>();
  let ticks = 0;

  async function check(client: Client, isAllowed: IsAllowed): Promise<void> {
    try {
      if (!(await isAllowed())) client.end('credential_revoked');
    } catch {
      // It cannot be told now, and is asked again.
    }
  }
  function tick(): void {
    ticks += 1;
    const isFullCheck = ticks % CHECK_TICKS === 0;
    const now = performance.now();
    for (const [client, isAllowed] of clients) {
      if (now - (client.fullSince() ?? now) > STALL_MS) client.end('slow_reader');
      else if (isFullCheck || suspects.has(client.asked.organizationId))
        void check(client, isAllowed);
    }
    if (isFullCheck) suspects.clear();
  }
  const ticking = setInterval(tick, TICK_MS);
  return {
    suspect: (organizationId) => void suspects.add(organizationId),
    [Symbol.dispose]: () => clearInterval(ticking),
  };
}
