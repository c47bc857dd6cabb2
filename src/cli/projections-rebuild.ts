import { idOf } from '#projections/projection.ts';
import { rebuild } from '#projections/maintenance/rebuild.ts';
import { reject } from '../errors.ts';
import { noArchive } from './commands/audit/export.ts';
import { breakable } from './interruptible.ts';
import type { Command } from './command.ts';
import { givenProjections } from './given-projection.ts';
import { layOut, lengthOf } from './output.ts';
import { createProgressLine, thousands } from './progress-line.ts';

export const rebuildProjections: Command = {
  name: 'projections rebuild',
  summary: 'Fold read models afresh beside those in use, which they then replace',
  optionalOperand: 'NAME',
  options: {
    all: { meaning: 'all of them, as without a name' },
    archive: { meaning: 'read the archive (ARCHIVE=on) in place of the log, which serves others' },
  },
  read(given) {
    const projections = givenProjections(given);
    return async ({ desk, archivedLog, parked, openViews, isJson }) => {
      const log = given.has('archive') ? archivedLog : desk.log;
      if (log === null) return noArchive;
      const views = await openViews();
      const line = createProgressLine(isJson);
      const json = [];
      for (const projection of projections) {
        const id = idOf(projection);
        const rebuilt = await breakable((signal) =>
          rebuild({
            projection,
            log,
            views,
            parked,
            signal,
            onProgress({ checkpoint, target, folded, isWaiting }) {
              const note = isWaiting ? { note: 'waiting for the store or the log' } : {};
              line.show({ label: id, done: checkpoint, total: target, units: folded, ...note });
            },
          }),
        ).finally(() => line.end());
        if (rebuilt === null)
          return reject('UNAVAILABLE', {}, { message: `Somebody else is rebuilding ${id}.` });
        const { folded, seconds } = rebuilt;
        json.push({
          projection: id,
          events: folded,
          seconds: Number(seconds.toFixed(3)),
          events_per_second: Math.round(folded / Math.max(seconds, 0.001)),
          parked: rebuilt.parked,
        });
      }
      const rows = json.map((row) => [
        row.projection,
        thousands(row.events),
        lengthOf(Math.round(row.seconds * 1000)),
        thousands(row.events_per_second),
        String(row.parked),
      ]);
      const heads = ['REBUILT', 'EVENTS', 'TOOK', 'A SECOND', 'PARKED'];
      return { json, text: layOut(heads, rows).join('\n') };
    };
  },
};
