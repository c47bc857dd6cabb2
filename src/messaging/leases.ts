/**
 * Port: who is alive. Adapters: leases.jetstream.ts, leases.memory.ts.
 * A lease that is not renewed within `LEASE_MS` is gone.
 */
export type Leases = {
  /** Takes or renews a server's lease. */
  renew(serverId: string): Promise<void>;
  /** Gives a server's lease up. */
  release(serverId: string): Promise<void>;
  /** The servers that hold a lease now. */
  held(): Promise<Set<string>>;
};

/** A lease's life without renewal; renewed at a third of it, so two beats may be lost. */
export const LEASE_MS = 10_000;
