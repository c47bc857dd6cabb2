import type { Difference } from '#projections/maintenance/differences.ts';
import { verify, type Verified } from '#projections/maintenance/verify.ts';
import { breakable } from '../interruptible.ts';
import type { Command, Output } from '../command.ts';
import { asWhole } from '../arguments.ts';
import { givenProjections } from '../given-projection.ts';
import { printable } from '../output.ts';
import { createProgressLine, thousands } from '../progress-line.ts';

const SAMPLE_MAX = 100_000;

export const verifyProjections: Command = {
  name: 'projections verify',
  summary: 'Fold the log afresh and compare with the read models field by field',
  optionalOperand: 'NAME',
  options: {
    all: { meaning: 'all of them, as without a name' },
    sample: { value: 'N', meaning: 'only so many views of each, picked at random' },
  },
  read(given) {
    const projections = givenProjections(given);
    const sample = given.optional('sample', asWhole(1, SAMPLE_MAX));
    return async ({ desk, openViews, isJson }) => {
      const views = await openViews();
      const line = createProgressLine(isJson);
      const verified = await breakable((signal) =>
        verify({
          projections,
          log: desk.log,
          views,
          signal,
          sample,
          onProgress({ pass, passes, sequence, end }) {
            const label = passes === 1 ? 'folding' : `folding, part ${pass} of ${passes}`;
            line.show({ label, done: sequence, total: end, units: sequence });
          },
        }),
      ).finally(() => line.end());
      return report(verified);
    };
  },
};

function report(verified: readonly Verified[]): Output {
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
    `${projection}: ${thousands(views)} views, ${countOf(differences, isCut)}`,
    ...differences.map((difference) => `  ${inWords(difference)}`),
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

function inWords({ key, path, stored, folded }: Difference): string {
  return printable(`${key}  ${path}: stored ${stored}, the log says ${folded}`);
}
