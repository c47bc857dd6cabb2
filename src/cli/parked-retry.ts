import { everyProjection } from '#projections/all-projections.ts';
import { idOf } from '#projections/projection.ts';
import { retryParked } from '#projections/maintenance/retry-dead-letter.ts';
import type { ParkedEvent } from '../messaging/dead-letters.ts';
import { breakable } from './interruptible.ts';
import type { Command, CommandSession } from './command.ts';
import { givenOneOrAll, noneParked, parkedAt } from './given-parked.ts';
import { presentParked } from './commands/parked.ts';

export const retryParkedEvents: Command = {
  name: 'parked retry',
  summary: 'Fold the view of a parked event again, or have its work queue handle it again',
  optionalOperand: 'SEQ',
  options: { all: { meaning: 'all that are parked' } },
  read(given) {
    const sequence = givenOneOrAll(given);
    return async (session) => {
      const events = await parkedAt(session.parked, sequence);
      if (events.length === 0 && sequence !== null) return noneParked(sequence);
      const json = [];
      for (const event of events)
        json.push({ ...presentParked(event), ...(await retry(session, event)) });
      const lines = json.map(({ sequence: at, parked_by: by, outcome, reason }) => {
        if (outcome === 'mended') return `event ${at}, parked by ${by}: done, and parked no more`;
        return `event ${at}, parked by ${by}: it stays parked: ${reason}`;
      });
      const differs = json.some(({ outcome }) => outcome === 'fails');
      return { json, text: lines.join('\n') || 'nothing is parked', differs };
    };
  },
};

async function retry({ desk, parked, openViews }: CommandSession, event: ParkedEvent) {
  if (event.kind === 'inbox') return parked.redeliver(event);
  const projection = everyProjection.find((one) => idOf(one) === event.by);
  if (projection === undefined) {
    // Of a version that is no more.
    await parked.forget(event);
    return { outcome: 'mended' } as const;
  }
  const views = await openViews();
  return breakable((signal) =>
    retryParked({ projection, event, log: desk.log, views, parked, signal }),
  );
}
