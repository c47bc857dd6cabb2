/** Counts the connections of each key and decides whether one more is admitted. */
export type KeyConnections = {
  /**
   * True where the key may have another connection, which counts from now on.
   * @throws what the listing throws
   */
  take(keyHash: string): Promise<boolean>;
};

export type KeyConnectionsOptions = {
  /** Connections of one key at once. */
  max: number;
  /** Asks the servers for the keys of all connections, one entry for each connection. */
  list: () => Promise<readonly string[]>;
};

/** Connections of a key that are admitted before the servers are asked for the current count. */
const UNASKED_MAX = 8;

/**
 * Counts the connections admitted here and asks the servers when the limit comes near: connections
 * end without notice, and other processes admit too. A key has at most `max` connections, and 8
 * more for each further process that admits tenants.
 */
export function createKeyConnections({ max, list }: KeyConnectionsOptions): KeyConnections {
  let listed = new Map<string, number>();
  /** Admitted since the listing was requested. */
  let taken = new Map<string, number>();
  let listing: Promise<void> | null = null;

  async function relist(): Promise<void> {
    const since = new Map<string, number>();
    const before = taken;
    taken = since;
    try {
      const keys = await list();
      listed = new Map();
      for (const key of keys) listed.set(key, countOf(listed, key) + 1);
    } catch (error) {
      taken = new Map(before);
      for (const [key, count] of since) taken.set(key, countOf(taken, key) + count);
      throw error;
    }
  }
  /** One listing at a time; a caller waits for the next one, since this one may be incomplete. */
  async function refresh(): Promise<void> {
    await listing?.catch(() => undefined);
    listing ??= relist().finally(() => {
      listing = null;
    });
    await listing;
  }
  return {
    async take(keyHash) {
      const unasked = countOf(taken, keyHash);
      if (unasked >= Math.min(UNASKED_MAX, max) || countOf(listed, keyHash) + unasked >= max)
        await refresh();
      if (countOf(listed, keyHash) + countOf(taken, keyHash) >= max) return false;
      taken.set(keyHash, countOf(taken, keyHash) + 1);
      return true;
    },
  };
}

function countOf(counts: ReadonlyMap<string, number>, key: string): number {
  return counts.get(key) ?? 0;
}
