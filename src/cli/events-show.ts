import { toCloudEvent } from '#events/cloud-event.ts';
import { filters } from '#events/subjects.ts';
import { reject } from '../errors.ts';
import type { Command } from './command.ts';
import { asWhole } from './arguments.ts';
import { printable } from './output.ts';
import { readEvents } from './read-events.ts';

export const showEvent: Command = {
  name: 'events show',
  summary: 'Show one event of the log whole',
  operands: ['SEQ'],
  options: {},
  read(given) {
    const sequence = given.operand(0, asWhole(1, Number.MAX_SAFE_INTEGER));
    return async ({ desk, warn }) => {
      const nothing = reject('NOT_FOUND', { sequence }, { message: 'The log has no such event.' });
      if (sequence > (await desk.log.lastSequence())) return nothing;
      const range = { after: sequence - 1, upTo: sequence };
      for await (const event of readEvents(desk.log, filters.all, warn, range)) {
        const json = toCloudEvent(event);
        const lines = JSON.stringify(json, null, 2).split('\n');
        return { json, text: lines.map(printable).join('\n') };
      }
      return nothing;
    };
  },
};
