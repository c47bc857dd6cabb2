/** How many connections each key has, and whether one more may be. */
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
  /** The keys of all connections there are, one for each; the servers tell. */
  list: () => Promise<readonly string[]>;
};

/** So many of a key are let in before the servers are asked how many there are by now. */
const UNASKED_MAX = 8;

/**
 * Counts who is let in here, and asks the servers before it believes the count: connections end
 * without a word, and other processes let in too. So of a key there are at most `max`, and 8 more
 * for each further process that lets tenants in.
 */
export function createKeyConnections({ max, list }: KeyConnectionsOptions): KeyConnections {
  let listed = new Map<string, number>();
  /** Let in since the listing was asked for. */
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
  /** One at a time; who comes meanwhile waits for the next: this one may not have seen all. */
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
