import { ArchiveMismatch } from '#src/features/archive/archivist/archive-run.ts';
import { archiveOnce } from '#src/features/archive/archivist/archivist.ts';
import { ArchiveDamaged, reject } from '#src/kernel/errors.ts';
import { parseTime } from '../../arguments.ts';
import type { Command } from '../../command.ts';
import { UsageError } from '../../errors.ts';
import { interruptible } from '../../interruptible.ts';
import { formatNumber } from '../../progress-line.ts';

export const runArchiveCommand: Command = {
  read(options) {
    const before = options.optional('before', parseTime);
    return async ({ config, context, openArchivist }) => {
      const kept =
        before === null
          ? config.archive
          : { retainEndedMs: context.now() - before, retainEventsMax: Infinity };
      const { retainEndedMs, retainEventsMax } = kept;
      if (retainEndedMs === null)
        throw new UsageError('RETAIN_ENDED is forever: --before is needed');
      const archivist = await openArchivist();
      const run = await interruptible((signal) =>
        archiveOnce(archivist, { retainEndedMs, retainEventsMax }, signal),
      ).catch((error: unknown) => {
        if (error instanceof ArchiveMismatch || error instanceof ArchiveDamaged)
          return reject('UNAVAILABLE', {}, { message: error.message });
        throw error;
      });
      if (run === null)
        return reject('UNAVAILABLE', {}, { message: 'Another process is archiving.' });
      if ('code' in run) return run;
      const lines = [
        `${formatNumber(run.records)} events sealed in ${run.segments} segments`,
        `${formatNumber(run.sessions)} sessions ended in them`,
        `the event store begins after event ${run.truncatedTo}`,
        ...(run.heldBack === null ? [] : [`archived events stay: ${run.heldBack}`]),
      ];
      return { json: run, text: lines.join('\n') };
    };
  },
};
