/**
 * Port: the memory of the read model's store. Adapter: redis/redis-memory-use.ts.
 * @throws Unavailable('read-model')
 */
export type ReadMemoryUse = () => Promise<MemoryUse>;

/** `maxBytes`: the store's own limit; 0: it has none. */
export type MemoryUse = { usedBytes: number; maxBytes: number };
