/** Loaded values, the least recently used of which are dropped above a number of bytes. */
export class ByteCache {
  readonly #bytesMax: number;
  readonly #entries = new Map<string, { value: Promise<unknown>; bytes: number }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The value of a key, loaded once for all that ask for it. A failure is not kept. */
  async get<T>(key: string, bytes: (value: T) => number, load: () => Promise<T>): Promise<T> {
    const found = this.#entries.get(key);
    if (found !== undefined) {
      // Last in the order of the map: most recently used.
      this.#entries.delete(key);
      this.#entries.set(key, found);
      return (await found.value) as T;
    }
    const entry = { value: load(), bytes: 0 };
    this.#entries.set(key, entry);
    try {
      const value = await entry.value;
      entry.bytes = bytes(value);
      this.#bytes += entry.bytes;
      this.#drop();
      return value;
    } catch (error) {
      this.#entries.delete(key);
      throw error;
    }
  }

  #drop(): void {
    for (const [key, { bytes }] of this.#entries) {
      if (this.#bytes <= this.#bytesMax) return;
      // Zero: it is being loaded.
      if (bytes === 0) continue;
      this.#entries.delete(key);
      this.#bytes -= bytes;
    }
  }
}
