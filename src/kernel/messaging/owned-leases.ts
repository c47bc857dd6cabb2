import { sleep } from '#src/kernel/async/sleep.ts';
import { LEASE_MS, type Leases } from './leases.ts';

/** Another process has the lease. */
export class LeaseTaken extends Error {
  override readonly name = 'LeaseTaken';
}

/** Two renewals of one owner may meet; the later one is made again. */
const RENEWALS_MAX = 3;
const RENEW_AGAIN_MS = 50;
/** A lease without renewals is free after `LEASE_MS`; the server drops it a moment later. */
const CLAIM_MS = 1.5 * LEASE_MS;
const CLAIM_EVERY_MS = 500;

/**
 * The same leases, whose servers' leases have an owner: they are not renewed while another owner
 * has them (`renew` throws LeaseTaken), and only its own are released.
 */
export function ownLeases(leases: Leases, owner: string): Leases {
  return {
    ...leases,
    async renew(serverId) {
      for (let count = 0; count < RENEWALS_MAX; count += 1) {
        if (await leases.acquire(serverId, owner)) return;
        await sleep(RENEW_AGAIN_MS);
      }
      throw new LeaseTaken(`another process has the lease of the server ${serverId}`);
    },
    release: (name, holder = owner) => leases.release(name, holder),
  };
}

/**
 * Takes a server's lease. The lease of a process that has just died is waited for.
 * @throws LeaseTaken if another owner renews it all the while, for 15 s
 */
export async function claimLease(
  leases: Leases,
  serverId: string,
  { withinMs = CLAIM_MS, signal }: { withinMs?: number; signal?: AbortSignal } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      return await leases.renew(serverId);
    } catch (error) {
      if (!(error instanceof LeaseTaken) || performance.now() > deadline) throw error;
    }
    await sleep(CLAIM_EVERY_MS, signal);
    signal?.throwIfAborted();
  }
}
