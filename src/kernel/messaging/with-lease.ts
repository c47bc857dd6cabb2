import { newId } from '#src/kernel/ids.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { LEASE_MS, type Leases } from '#src/kernel/messaging/leases.ts';

/**
 * Does the work with the lease of that name, which is renewed meanwhile; null: another process has
 * it.
 * @param work gets a signal that aborts with the given one, or when the lease is lost
 */
export async function withLease<Result>(
  leases: Leases,
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | null> {
  const holder = newId('arc');
  if (!(await leases.acquire(name, holder))) return null;
  const done = new AbortController();
  const lost = new AbortController();
  const renewing = renew(leases, { name, holder }, done.signal, lost);
  try {
    return await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    done.abort();
    await renewing;
    if (!lost.signal.aborted) await leases.release(name, holder);
  }
}

/** Renews the lease until done; aborts `lost` if it cannot, or another process has it. */
async function renew(
  leases: Leases,
  { name, holder }: { name: string; holder: string },
  done: AbortSignal,
  lost: AbortController,
): Promise<void> {
  for (;;) {
    await sleep(LEASE_MS / 3, done);
    if (done.aborted) return;
    const isHeld = await leases.acquire(name, holder).catch(() => false);
    if (isHeld) continue;
    lost.abort(new Error(`the lease ${name} was lost`));
    return;
  }
}
