/** Runs the work for each item, so many at once; it must not reject. */
export async function eachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  async function take() {
    for (const item of left) await work(item);
  }
  await Promise.all(Array.from({ length: atOnce }, take));
}
