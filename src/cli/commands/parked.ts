import type { ParkedEvent } from '#src/messaging/dead-letters.ts';
import type { Command } from '../command.ts';
import { layOut } from '../output.ts';

/** A schema's whole complaint runs to pages; `parked show` gives it. */
const REASON_MAX = 80;

export const listParked: Command = {
  name: 'parked list',
  summary: 'List the events that a projection or a work queue could make nothing of',
  options: {},
  read() {
    return async ({ parked }) => {
      const events = await parked.list();
      const rows = events.map(({ sequence, stream, by, subject, reason, at }) => [
        stream === 'EVENTS' ? String(sequence) : `${stream} ${sequence}`,
        by,
        subject === '' ? '–' : subject,
        at,
        reason.slice(0, REASON_MAX),
      ]);
      const lines = layOut(['EVENT', 'PARKED BY', 'SUBJECT', 'SINCE', 'REASON'], rows);
      return {
        json: events.map(presentParked),
        text: events.length === 0 ? 'nothing is parked' : lines.join('\n'),
      };
    };
  },
};

export function presentParked({ by, kind, stream, sequence, subject, reason, at }: ParkedEvent) {
  return { sequence, stream, parked_by: by, kind, subject: subject || null, reason, since: at };
}
