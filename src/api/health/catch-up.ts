import { setTimeout as pause } from 'node:timers/promises';
import { filters } from '#events/subjects.ts';
import { organizationSessions } from '#projections/organization-sessions.ts';
import { idOf } from '#projections/projection.ts';
import { servers } from '#projections/servers.ts';
import { sessionView } from '#projections/session-view.ts';
import type { Views } from '#projections/store/views.ts';
import type { EventLog } from '#src/event-store/event-store.ts';

/**
 * Whether the read models of sessions and servers have once held what the log held when this
 * process began.
 */
export type CatchUp = { isDone(): boolean } & AsyncDisposable;

/** A look at a read model waits this long for it; also the pause where a part is away. */
const LOOK_MS = 500;

/**
 * Watches a start, such as that of a new version of a projection, until lists can be read and it is
 * known which servers there are. It asks for no more: what is lost later, readers
 * are told by the reads themselves.
 */
export function watchCatchUp(log: Pick<EventLog, 'lastSequence'>, views: Views): CatchUp {
  const stop = new AbortController();
  const { signal } = stop;
  let isDone = false;

  async function look(): Promise<boolean> {
    const [sessionsEnd, serversEnd] = await Promise.all([
      log.lastSequence(filters.sessions),
      log.lastSequence(filters.servers),
    ]);
    const reached = await Promise.all([
      views.reached(idOf(sessionView), sessionsEnd, LOOK_MS),
      views.reached(idOf(organizationSessions), sessionsEnd, LOOK_MS),
      // Without it each create would be refused for want of a server.
      views.reached(idOf(servers), serversEnd, LOOK_MS),
    ]);
    return reached.every(Boolean);
  }
  async function watch(): Promise<void> {
    while (!isDone && !signal.aborted) {
      try {
        isDone = await look();
      } catch {
        // Whatever it was, it is no reason never to look again: who follows the log reports it.
        // Rejects only when the signal aborts, which the loop sees for itself.
        await pause(LOOK_MS, undefined, { signal }).catch(() => undefined);
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
