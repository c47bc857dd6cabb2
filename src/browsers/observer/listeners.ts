import { setMaxListeners } from 'node:events';
import type { EventListener } from './part.ts';

/** What parts hear of one source of events, and the end of that source. */
export type Source = {
  readonly listeners: Map<string, EventListener[]>;
  readonly end: AbortController;
};

export function createSource(): Source {
  const end = new AbortController();
  // Each part may listen to it.
  setMaxListeners(0, end.signal);
  return { listeners: new Map(), end };
}

/** Adds a listener; it stays as long as the source. */
export function listen({ listeners }: Source, event: string, listener: EventListener): void {
  const known = listeners.get(event);
  if (known === undefined) listeners.set(event, [listener]);
  else known.push(listener);
}
