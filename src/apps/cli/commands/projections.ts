import { allProjections } from '#projections/all-projections.ts';
import type { Difference } from '#projections/maintenance/differences.ts';
import { rebuild } from '#projections/maintenance/rebuild.ts';
import { verify, type VerifyResult } from '#projections/maintenance/verify.ts';
import { projectionId, type Projection } from '#projections/projection.ts';
import { reject } from '#src/kernel/errors.ts';
import { readReadModels } from '#src/commands/operator/read-models.ts';
import { integer } from '../arguments.ts';
import type { Arguments, Command, Output } from '../command.ts';
import { UsageError } from '../errors.ts';
import { interruptible } from '../interruptible.ts';
import { formatTable, formatDuration, printable } from '../output.ts';
import { createProgressLine, formatNumber } from '../progress-line.ts';

export const listProjections: Command = {
  read() {
    return async ({ context, openViews }) => {
      const views = await openViews();
      const json = await readReadModels(views, await context.eventStore.lastSequence());
      const rows = json.map((store) => [
        store.projection,
        formatNumber(store.views),
        formatNumber(store.checkpoint),
        store.behind === null ? '–' : formatNumber(store.behind),
        store.state,
      ]);
      const heads = ['PROJECTION', 'VIEWS', 'FOLDED TO', 'BEHIND', 'STATE'];
      return { json, text: formatTable(heads, rows).join('\n') };
    };
  },
};

export const rebuildProjections: Command = {
  read(options) {
    const projections = selectedProjections(options);
    return async ({ context, deadLetters, openViews, isJson }) => {
      const views = await openViews();
      const line = createProgressLine(isJson);
      const json = [];
      for (const projection of projections) {
        const id = projectionId(projection);
        const rebuilt = await interruptible((signal) =>
          rebuild({
            projection,
            eventStore: context.eventStore,
            views,
            deadLetters,
            signal,
            onProgress({ checkpoint, target, folded, isWaiting }) {
              const note = isWaiting ? { note: 'waiting for Redis or the event store' } : {};
              line.show({ label: id, done: checkpoint, total: target, units: folded, ...note });
            },
          }),
        ).finally(() => line.end());
        if (rebuilt === null)
          return reject('UNAVAILABLE', {}, { message: `Another process is rebuilding ${id}.` });
        const { folded, seconds } = rebuilt;
        json.push({
          projection: id,
          events: folded,
          seconds: Number(seconds.toFixed(3)),
          events_per_second: Math.round(folded / Math.max(seconds, 0.001)),
          dead_letters: rebuilt.deadLettered,
        });
      }
      const rows = json.map((row) => [
        row.projection,
        formatNumber(row.events),
        formatDuration(Math.round(row.seconds * 1000)),
        formatNumber(row.events_per_second),
        String(row.dead_letters),
      ]);
      const heads = ['REBUILT', 'EVENTS', 'TOOK', 'A SECOND', 'DEAD LETTERS'];
      return { json, text: formatTable(heads, rows).join('\n') };
    };
  },
};

const SAMPLE_MAX = 100_000;

export const verifyProjections: Command = {
  read(options) {
    const projections = selectedProjections(options);
    const sample = options.optional('sample', integer(1, SAMPLE_MAX));
    return async ({ context, openViews, isJson }) => {
      const views = await openViews();
      const line = createProgressLine(isJson);
      const verified = await interruptible((signal) =>
        verify({
          projections,
          eventStore: context.eventStore,
          views,
          signal,
          sample,
          onProgress({ pass, passes, sequence, end }) {
            const label = passes === 1 ? 'folding' : `folding, part ${pass} of ${passes}`;
            line.show({ label, done: sequence, total: end, units: sequence });
          },
        }),
      ).finally(() => line.end());
      return presentVerified(verified);
    };
  },
};

function presentVerified(verified: readonly VerifyResult[]): Output {
  const differing = verified.filter(({ differences }) => differences.length > 0);
  const json = {
    equal: differing.length === 0,
    projections: verified.map(({ projection, views, differences, isCut }) => ({
      projection,
      views,
      differences,
      more_differences: isCut,
    })),
  };
  const lines = verified.flatMap(({ projection, views, differences, isCut }) => [
    `${projection}: ${formatNumber(views)} views, ${countOf(differences, isCut)}`,
    ...differences.map((difference) => `  ${describeDifference(difference)}`),
  ]);
  const last = json.equal
    ? 'equal'
    : `different: ${differing.map(({ projection }) => projection).join(', ')}`;
  return { json, text: [...lines, last].join('\n'), differs: !json.equal };
}

function countOf({ length }: readonly Difference[], isCut: boolean): string {
  if (length === 0) return 'equal';
  return isCut ? `more than ${length} differences` : `${length} difference${length > 1 ? 's' : ''}`;
}

function describeDifference({ key, path, stored, folded }: Difference): string {
  return printable(`${key}  ${path}: stored ${stored}, folded ${folded}`);
}

/** The projections that NAME or --all select; neither: all. @throws UsageError for both of them */
export function selectedProjections(options: Arguments): readonly Projection<unknown>[] {
  const one = options.optionalOperand(parseProjection);
  if (one !== null && options.has('all')) throw new UsageError('either a name or --all');
  return one === null ? allProjections : [one];
}

/** `session-view`, or with its version: `session-view:v1`. */
export function parseProjection(text: string): Projection<unknown> {
  const found = allProjections.find((one) => one.name === text || projectionId(one) === text);
  if (found !== undefined) return found;
  const names = allProjections.map(({ name }) => name).join(', ');
  throw new UsageError(`is not one of the projections: ${names}`);
}
