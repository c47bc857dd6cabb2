import { signal } from '@preact/signals';
import type { CloudEvent } from '#events/cloud-event.ts';
import { followEvents, type Listener } from './follow-events.ts';

/** The organization's events in this tab: one stream, however many parts of the page listen. */

/** `broken`: why there is no stream now; null while there is one, or the first is being opened. */
export const connection = signal<{ isOpen: boolean; broken: string | null }>({
  isOpen: false,
  broken: null,
});

const listeners = new Set<Partial<Listener>>();

/** @returns stops following */
export function followOrganization(): () => void {
  connection.value = { isOpen: false, broken: null };
  const stop = followEvents({
    onOpen(isGap) {
      connection.value = { isOpen: true, broken: null };
      for (const listener of listeners) listener.onOpen?.(isGap);
    },
    onEvent(event) {
      for (const listener of listeners) listener.onEvent?.(event);
    },
    onBroken(reason) {
      connection.value = { isOpen: false, broken: reason };
      for (const listener of listeners) listener.onBroken?.(reason);
    },
  });
  return () => {
    stop();
    connection.value = { isOpen: false, broken: null };
  };
}

/**
 * Hears the events from now on. `onOpen(true)`: what happened until now has to be read; it is
 * called at once if the stream is open.
 * @returns stops listening
 */
export function listen(listener: Partial<Listener>): () => void {
  listeners.add(listener);
  if (connection.value.isOpen) listener.onOpen?.(true);
  return () => listeners.delete(listener);
}

/** The session that an event is about; null: it is about something else. */
export function sessionOf({ type, subject }: CloudEvent): string | null {
  return type.startsWith('session.') ? subject : null;
}
