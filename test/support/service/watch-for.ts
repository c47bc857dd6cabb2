import type { RecordedEvent } from '#events/events.ts';
import { filters } from '#events/subjects.ts';
import type { RunningService } from './service.ts';
import { openLog } from './service-log.ts';

/** The next event of the type from now on, of a session or of a browser of that server. */
export async function watchFor(service: RunningService, type: string, serverId: string) {
  const opened = await openLog(service);
  const stop = new AbortController();
  const after = await opened.eventStore.lastSequence();
  const { signal } = stop;
  const isIt = (event: RecordedEvent) =>
    event.type === type &&
    (event.state === null || !('serverId' in event.state) || event.state.serverId === serverId);
  async function follow(): Promise<void> {
    const options = { subjects: filters.all, after, signal, onUnreadable: () => undefined };
    for await (const batch of opened.eventStore.subscribe(options))
      if (batch.some(isIt)) stop.abort();
    await opened[Symbol.asyncDispose]();
  }
  const moment = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  void follow();
  return { come: moment };
}
