import {
  families,
  type Family,
  type FamilyName,
  type FamilyOwner,
} from '#src/kernel/telemetry/metric-families.ts';
import { openMetrics } from '#src/kernel/telemetry/metrics.ts';
import { parseMetrics } from './metrics-text.ts';

const PROCESSES: Record<FamilyOwner, string> = {
  service: 'service',
  api: 'api',
  gateway: 'gateway',
  provisioner: 'provisioner',
  projector: 'projector',
  webhooks: 'webhooks',
  process: 'all',
};

/**
 * The text of `deploy/metrics.md`: the present document, with a row for each metric of the code.
 * The column that explains a metric's changes is written by hand in the document.
 */
export function metricsDocument(current: string): string {
  const lines = current.split('\n');
  const begin = lines.findIndex((line) => line.startsWith('|---')) + 1;
  const end = lines.findIndex((line, at) => at >= begin && !line.startsWith('|'));
  const moves = new Map(
    lines.slice(begin, end).map((row) => {
      const [name = '', , , , words = ''] = row.slice(2, -2).split(' | ');
      return [name, words];
    }),
  );
  const rows = (Object.entries(families) as [FamilyName, Family][]).map(([name, family]) => {
    const words = moves.get(`\`${name}\``) || UNEXPLAINED;
    return `| \`${name}\` | ${labelOf(family)} | ${ownersOf(family)} | ${family.help} | ${words} |`;
  });
  return [...lines.slice(0, begin), ...rows, ...lines.slice(end)].join('\n');
}

/** A metric that is not in the document: its author adds its meaning. */
export const UNEXPLAINED = '(not explained yet)';

/** Labels with too many values for a row: the document's head has streams and errors. */
const LONG_LABELS = ['stream', 'error', 'status'];

/** Its label, and its kind where its name does not say it; may be empty. */
function labelOf({ kind, label }: Family): string {
  const kinds = kind === 'histogram' ? ['histogram'] : [];
  return [...kinds, ...(label === undefined ? [] : [valuesOf(label)])].join('; ');
}

function valuesOf({ name, values }: NonNullable<Family['label']>): string {
  if (LONG_LABELS.includes(name)) return `\`${name}\``;
  const listed = typeof values === 'string' ? values : values.map((v) => `\`${v}\``).join(' ');
  return `\`${name}\`: ${listed}`;
}

function ownersOf({ of }: Family): string {
  return of.map((owner) => PROCESSES[owner]).join('; ');
}

/** The names of metrics in a text that no process of the service exports. */
export async function unknownMetrics(text: string): Promise<string[]> {
  const metrics = openMetrics({ roles: 'all', owners: Object.keys(PROCESSES) as FamilyOwner[] });
  const known = new Set(parseMetrics(await metrics.text()).keys());
  const names = text.match(/\b(?:bss|process|nodejs)_[a-z0-9_]+/g) ?? [];
  const isKnown = (name: string) =>
    known.has(name) || known.has(name.replace(/_(?:bucket|sum|count)$/, ''));
  return [...new Set(names)].filter((name) => !isKnown(name));
}
