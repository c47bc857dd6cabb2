import { MalformedEvent, UnknownEvent } from '#events/codec.ts';
import { WrittenByNewer } from '#src/kernel/errors.ts';
import type { UnreadableEvent } from './event-store.ts';

/** For a subscriber that stops at an event which a newer version wrote. @throws UnknownEvent */
export function stopAtUnknown({ kind, reason, sequence }: UnreadableEvent): void {
  if (kind === 'unknown') throw new UnknownEvent(`event ${sequence}: ${reason}`);
}

/** For a read whose answer would be wrong without the event. @throws WrittenByNewer */
export function refuseUnknown({ kind, reason }: UnreadableEvent): void {
  if (kind === 'unknown') throw new WrittenByNewer(new UnknownEvent(reason));
}

/** For a read that must be complete. @throws WrittenByNewer; MalformedEvent */
export function refuseUnreadable(poison: UnreadableEvent): never {
  refuseUnknown(poison);
  throw new MalformedEvent(poison.reason);
}

/** The result of decoding one event for a decision. @throws WrittenByNewer; MalformedEvent */
export function readable<Event>(decodeOne: () => Event): Event {
  try {
    return decodeOne();
  } catch (error) {
    if (error instanceof UnknownEvent) throw new WrittenByNewer(error);
    throw error;
  }
}
