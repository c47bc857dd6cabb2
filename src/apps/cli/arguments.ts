import { aggregates } from '#events/events.ts';
import { isId } from '#events/subjects.ts';
import { readMomentOrDate } from '#src/kernel/moment.ts';
import type { Parser } from './command.ts';
import { UsageError } from './errors.ts';

export function parseId(text: string): string {
  if (!isId(text)) throw new UsageError('is not an id: 1 to 64 letters, digits, - and _');
  return text;
}

export function textUpTo(lengthMax: number): Parser<string> {
  return (text) => {
    if (text.trim() === '' || text.length > lengthMax || /\p{Cc}/u.test(text))
      throw new UsageError(`needs 1 to ${lengthMax} characters without control characters`);
    return text;
  };
}

export function integer(min: number, max: number): Parser<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new UsageError(`is not a whole number from ${min} to ${max}`);
    return value;
  };
}

/** An RFC 3339 time, as ms since the epoch. */
export function parseTime(text: string): number {
  const time = text.includes('T') ? readMomentOrDate(text) : null;
  if (time === null) throw new UsageError('is not a time, as 2026-11-20T09:30:00.000Z');
  return time;
}

/** An RFC 3339 time or a date, which stands for its first millisecond in UTC. */
export function parseTimeOrDate(text: string): number {
  return readMomentOrDate(text) ?? parseTime(text);
}

export function oneOf<Word extends string>(words: readonly Word[]): Parser<Word> {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new UsageError(`is none of ${words.join(', ')}`);
    return word;
  };
}

/** All event types. */
export const eventTypes = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
