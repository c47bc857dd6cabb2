import { toCloudEvent } from '#events/cloud-event.ts';
import { EVENTS_STREAM, filters } from '#events/subjects.ts';
import type { Command } from './command.ts';
import { givenParked, noneParked, parkedAt } from './given-parked.ts';
import { printable } from './output.ts';
import { presentParked } from './commands/parked.ts';
import { readEvents } from './read-events.ts';

export const showParked: Command = {
  name: 'parked show',
  summary: 'Show a parked event whole, and why it is parked',
  operands: ['SEQ'],
  options: {},
  read(given) {
    const sequence = given.operand(0, givenParked);
    return async ({ desk, parked }) => {
      const found = await parkedAt(parked, sequence);
      if (found.length === 0) return noneParked(sequence);
      let event = null;
      // Why it cannot be read is told by its reason.
      const range = { after: sequence - 1, upTo: sequence };
      if (found.some(({ stream }) => stream === EVENTS_STREAM))
        for await (const one of readEvents(desk.log, filters.all, () => undefined, range))
          event = toCloudEvent(one);
      const json = { parked: found.map(presentParked), event };
      return { json, text: JSON.stringify(json, null, 2).split('\n').map(printable).join('\n') };
    };
  },
};
