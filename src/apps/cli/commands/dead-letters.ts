import { toOperatorEvent } from '#events/public-event.ts';
import { EVENTS_STREAM, filters } from '#events/subjects.ts';
import { reject } from '#src/kernel/errors.ts';
import type { DeadLetter, DeadLetterStore } from '#src/kernel/messaging/dead-letters.ts';
import { retryEvent } from '#src/commands/operator/retry.ts';
import { integer } from '../arguments.ts';
import type { Arguments, Command, CommandSession } from '../command.ts';
import { UsageError } from '../errors.ts';
import { interruptible } from '../interruptible.ts';
import { operatorMetadata } from '../operator.ts';
import { formatTable, printable } from '../output.ts';
import { readEvents } from '#src/kernel/event-store/read-events.ts';

/** The full reason of a schema mismatch runs to pages; `dead-letters show` prints it. */
const REASON_MAX = 80;

export const listDeadLetters: Command = {
  read() {
    return async ({ deadLetters }) => {
      const events = await deadLetters.list();
      const rows = events.map(({ sequence, stream, by, subject, reason, at }) => [
        stream === 'EVENTS' ? String(sequence) : `${stream} ${sequence}`,
        by,
        subject === '' ? '–' : subject,
        at,
        reason.slice(0, REASON_MAX),
      ]);
      const lines = formatTable(['EVENT', 'FAILED BY', 'SUBJECT', 'SINCE', 'REASON'], rows);
      return {
        json: events.map(presentDeadLetter),
        text: events.length === 0 ? 'there is no dead letter' : lines.join('\n'),
      };
    };
  },
};

export function presentDeadLetter(letter: DeadLetter) {
  const { by, kind, stream, sequence, subject, reason, at: since, attempts } = letter;
  const place = { sequence, stream, failed_by: by, kind, subject: subject || null };
  return { ...place, reason, since, attempts };
}

export const showDeadLetter: Command = {
  read(options) {
    const sequence = options.operand(0, sequenceOperand);
    return async ({ context, deadLetters }) => {
      const found = await deadLettersAt(deadLetters, sequence);
      if (found.length === 0) return noDeadLetter(sequence);
      let event = null;
      // The dead letter's reason already says why the event cannot be read.
      const range = { after: sequence - 1, upTo: sequence };
      if (found.some(({ stream }) => stream === EVENTS_STREAM))
        for await (const one of readEvents(context.eventStore, filters.all, () => undefined, range))
          event = toOperatorEvent(one);
      const json = { dead_letters: found.map(presentDeadLetter), event };
      return { json, text: JSON.stringify(json, null, 2).split('\n').map(printable).join('\n') };
    };
  },
};

export const retryDeadLetters: Command = {
  read(options) {
    const sequence = sequenceOrAll(options);
    return async (session) => {
      const events = await deadLettersAt(session.deadLetters, sequence);
      if (events.length === 0 && sequence !== null) return noDeadLetter(sequence);
      const json = [];
      for (const event of events)
        json.push({ ...presentDeadLetter(event), ...(await retry(session, event)) });
      const lines = json.map(({ sequence: at, failed_by: by, outcome, reason }) => {
        if (outcome === 'mended') return `event ${at} of ${by}: resolved`;
        return `event ${at} of ${by}: still a dead letter: ${reason}`;
      });
      const differs = json.some(({ outcome }) => outcome === 'fails');
      return { json, text: lines.join('\n') || 'there is no dead letter', differs };
    };
  },
};

function retry({ context, deadLetters, openViews }: CommandSession, event: DeadLetter) {
  const { eventStore } = context;
  return interruptible((signal) =>
    retryEvent({ eventStore, deadLetters, openViews, signal }, event),
  );
}

export const skipDeadLetters: Command = {
  read(options) {
    const sequence = sequenceOrAll(options);
    return async ({ deadLetters }) => {
      const events = await deadLettersAt(deadLetters, sequence);
      if (events.length === 0 && sequence !== null) return noDeadLetter(sequence);
      const { actor } = operatorMetadata();
      for (const event of events) await deadLetters.skip(event, actor.id);
      const lines = events.map((event) => `skipped event ${event.sequence} of ${event.by}`);
      const json = { skipped: events.map(presentDeadLetter) };
      return { json, text: lines.join('\n') || 'there is no dead letter' };
    };
  },
};

export const sequenceOperand = integer(1, Number.MAX_SAFE_INTEGER);

/** The sequence to act on; null for --all. @throws UsageError if both or neither are given */
export function sequenceOrAll(options: Arguments): number | null {
  const sequence = options.optionalOperand(sequenceOperand);
  if ((sequence === null) !== options.has('all')) throw new UsageError('either SEQ or --all');
  return sequence;
}

/** The dead letters of the event with this sequence; null: all dead letters. */
export async function deadLettersAt(
  deadLetters: DeadLetterStore,
  sequence: number | null,
): Promise<DeadLetter[]> {
  const all = await deadLetters.list();
  return all.filter((event) => sequence === null || event.sequence === sequence);
}

export function noDeadLetter(sequence: number | null) {
  const message =
    sequence === null ? 'There is no dead letter.' : 'No event of this sequence is a dead letter.';
  return reject('NOT_FOUND', { sequence }, { message });
}
