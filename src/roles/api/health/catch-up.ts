import { organizationSessions } from '#projections/organization-sessions.ts';
import { projectionId } from '#projections/projection.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import { sleep } from '#src/kernel/async/sleep.ts';
import type { EventStore } from '#src/kernel/event-store/event-store.ts';

/**
 * Whether the read models of sessions and servers have reached the event store's end as of this
 * process's start.
 */
export type CatchUp = { isDone(): boolean } & AsyncDisposable;

/** Time-out of a check; also the pause while a dependency is unavailable. */
const LOOK_MS = 500;

/**
 * Watches a start, such as that of a new version of a projection, until lists can be read and the
 * servers are known. Then it stops: a read model that falls behind later shows in the reads
 * themselves.
 */
export function watchCatchUp(eventStore: Pick<EventStore, 'lastSequence'>, views: Views): CatchUp {
  const stop = new AbortController();
  const { signal } = stop;
  let isDone = false;

  async function look(): Promise<boolean> {
    const end = await eventStore.lastSequence();
    const reached = await Promise.all([
      views.waitForCheckpoint(projectionId(sessionView), end, LOOK_MS),
      views.waitForCheckpoint(projectionId(organizationSessions), end, LOOK_MS),
      // Without it each create would be refused for want of a server.
      views.waitForCheckpoint(projectionId(servers), end, LOOK_MS),
    ]);
    return reached.every(Boolean);
  }
  async function watch(): Promise<void> {
    while (!isDone && !signal.aborted) {
      try {
        isDone = await look();
      } catch {
        // A failed check is repeated; the subscription to the event store reports the failure.
        await sleep(LOOK_MS, signal);
      }
    }
  }
  const watching = watch();
  return {
    isDone: () => isDone,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}
