import { setTimeout as pause } from 'node:timers/promises';
import { Unavailable } from '#src/errors.ts';
import type { EventLog } from './event-store.ts';

/** Whether the log is still the one that this process began with. */
export type SameLog = { isSame(): boolean } & AsyncDisposable;

const LOOK_EVERY_MS = 2_000;

/**
 * Finds out, within some seconds, that the log was emptied or replaced under this process. What it
 * remembers (places in the log, keys, read models' heights) is of another log then: it must not
 * serve, and only a restart makes it whole.
 * @param onChange told of every change
 */
export async function watchLog(
  log: Pick<EventLog, 'facts'>,
  onChange: (isSame: boolean) => void,
  everyMs: number = LOOK_EVERY_MS,
): Promise<SameLog> {
  const { id } = await log.facts();
  const stop = new AbortController();
  let isSame = true;

  /** Null where it does not say. */
  async function look(): Promise<boolean | null> {
    try {
      return (await log.facts()).id === id;
    } catch (error) {
      // What is no outage is the server's word that there is no such stream.
      return error instanceof Unavailable ? null : false;
    }
  }
  async function watch(): Promise<void> {
    // Seen twice: a server that starts may not know its streams yet.
    for (let seen = isSame; ;) {
      // Rejects only when the signal aborts, which the loop sees for itself.
      await pause(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
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
