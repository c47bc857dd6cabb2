import type { Command } from './command.ts';
import { givenOneOrAll, noneParked, parkedAt } from './given-parked.ts';
import { operatorCause } from './operator.ts';
import { presentParked } from './commands/parked.ts';

export const skipParked: Command = {
  name: 'parked skip',
  summary: 'Leave a parked event out for good; it stays in the log',
  optionalOperand: 'SEQ',
  options: { all: { meaning: 'all that are parked' } },
  read(given) {
    const sequence = givenOneOrAll(given);
    return async ({ parked }) => {
      const events = await parkedAt(parked, sequence);
      if (events.length === 0 && sequence !== null) return noneParked(sequence);
      const { actor } = operatorCause();
      for (const event of events) await parked.skip(event, actor.id);
      const lines = events.map((event) => `skipped event ${event.sequence}, parked by ${event.by}`);
      const json = { skipped: events.map(presentParked) };
      return { json, text: lines.join('\n') || 'nothing is parked' };
    };
  },
};
