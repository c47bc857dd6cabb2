import { newId } from '#src/kernel/ids.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';

/** A lease that this process has. */
export type HeldLease = {
  /** Aborts with the signal that `withLease` was given, or when the lease is lost. */
  signal: AbortSignal;
  /**
   * Whether no other process can have it. A process that was halted learns by its clock that its
   * lease has run out, before it can ask.
   */
  isSure(): boolean;
};

/**
 * Does the work with the lease of that name, which is renewed meanwhile; null: another process has
 * it.
 */
export async function withLease<Result>(
  leases: Leases,
  name: string,
  signal: AbortSignal,
  work: (lease: HeldLease) => Promise<Result>,
): Promise<Result | null> {
  const holder = newId('lse');
  const done = new AbortController();
  const lost = new AbortController();
  let renewedAt = 0;
  async function acquire(): Promise<boolean> {
    const askedAt = performance.now();
    const isHeld = await leases.acquire(name, holder);
    if (isHeld) renewedAt = askedAt;
    return isHeld;
  }
  /** Renews the lease until done; aborts `lost` if it cannot, or another process has it. */
  async function renew(): Promise<void> {
    for (;;) {
      await sleep(LEASE_MS / 3, done.signal);
      if (done.signal.aborted) return;
      if (await acquire().catch(() => false)) continue;
      lost.abort(new Error(`the lease ${name} was lost`));
      return;
    }
  }
  if (!(await acquire())) return null;
  const renewing = renew();
  const held = AbortSignal.any([signal, lost.signal]);
  const isSure = () => !held.aborted && performance.now() - renewedAt < LEASE_MS;
  try {
    return await work({ signal: held, isSure });
  } finally {
    done.abort();
    await renewing;
    if (!lost.signal.aborted) await leases.release(name, holder);
  }
}
