/**
 * Port: which servers are alive, and who alone may do a work. Adapters:
 * jetstream/jetstream-leases.ts, leases.memory.ts. A lease that is not renewed within `LEASE_MS`
 * expires.
 */
export type Leases = {
  /** Takes or renews a server's lease. */
  renew(serverId: string): Promise<void>;
  /** Takes or renews a lease that one holder has at a time; false: another one has it. */
  acquire(name: string, holder: string): Promise<boolean>;
  /** Releases a lease; with a holder, unless another one has it by now. */
  release(name: string, holder?: string): Promise<void>;
  /** The servers that hold a lease now. */
  held(): Promise<Set<string>>;
};

/**
 * Lifetime of a lease without renewal. It is renewed every third of that, so two renewals in a row
 * may be lost.
 */
export const LEASE_MS = 10_000;
