import { reject } from '../errors.ts';
import type { ParkedEvent, ParkedEvents } from '../messaging/dead-letters.ts';
import { Misuse } from './errors.ts';
import { asWhole, type Given } from './arguments.ts';

export const givenParked = asWhole(1, Number.MAX_SAFE_INTEGER);

/** The sequence that was given; null: --all. @throws Misuse for both or neither */
export function givenOneOrAll(given: Given): number | null {
  const sequence = given.optionalOperand(givenParked);
  if ((sequence === null) !== given.has('all')) throw new Misuse('either SEQ or --all');
  return sequence;
}

/** Whoever has parked the event of that sequence; null: all that are parked. */
export async function parkedAt(
  parked: ParkedEvents,
  sequence: number | null,
): Promise<ParkedEvent[]> {
  const all = await parked.list();
  return all.filter((event) => sequence === null || event.sequence === sequence);
}

export function noneParked(sequence: number | null) {
  const message = sequence === null ? 'Nothing is parked.' : 'Nobody has parked such an event.';
  return reject('NOT_FOUND', { sequence }, { message });
}
