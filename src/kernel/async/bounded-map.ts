/**
 * A map of at most `max` entries. Setting an entry makes it the newest; beyond `max` the oldest
 * goes. Reading changes nothing. A library's cache takes its memory for `max` entries at once;
 * most of these maps hold a few.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#max) for (const oldest of this.keys().take(1)) this.delete(oldest);
    return this;
  }
}
