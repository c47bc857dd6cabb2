import { Unavailable } from '#src/kernel/errors.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import { untilTickOf } from '#src/kernel/async/ticks.ts';
import type { EventStore } from './event-store.ts';

/** Whether the event store is still the one that this process started with. */
export type StoreIdentity = { isSame(): boolean } & AsyncDisposable;

const LOOK_EVERY_MS = 2_000;

/**
 * Detects within some seconds that the event store was emptied or replaced while this process runs.
 * All that the process remembers (sequences, keys, checkpoints of read models) belongs to the old
 * store then: it must not serve requests, and only a restart recovers it.
 * @param onChange called at every change
 */
export async function watchStoreIdentity(
  eventStore: Pick<EventStore, 'info'>,
  onChange: (isSame: boolean) => void,
  everyMs: number = LOOK_EVERY_MS,
): Promise<StoreIdentity> {
  const { id } = await eventStore.info();
  const stop = new AbortController();
  let isSame = true;

  /** Null if the event store does not answer. */
  async function look(): Promise<boolean | null> {
    try {
      return (await eventStore.info()).id === id;
    } catch (error) {
      // An error that is not an outage is the server's answer that the stream does not exist.
      return error instanceof Unavailable ? null : false;
    }
  }
  async function watch(): Promise<void> {
    // A change counts when it is seen twice: a starting server may not know its streams yet.
    for (let seen = isSame; ;) {
      await sleep(untilTickOf(everyMs), stop.signal);
      if (stop.signal.aborted) return;
      const found = await look();
      if (stop.signal.aborted) return;
      if (found === null) continue;
      if (found === seen && found !== isSame) {
        isSame = found;
        onChange(isSame);
      }
      seen = found;
    }
  }
  const watching = watch();
  return {
    isSame: () => isSame,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}
