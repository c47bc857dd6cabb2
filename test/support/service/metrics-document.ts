import {
  families,
  type Family,
  type FamilyName,
  type FamilyOwner,
} from '#src/kernel/telemetry/metric-families.ts';
import { openMetrics } from '#src/kernel/telemetry/metrics.ts';
import { parseMetrics } from './metrics-text.ts';

const PROCESSES: Record<FamilyOwner, string> = {
  service: 'with the API; of the whole service',
  api: 'with the API',
  gateway: 'gateway',
  provisioner: 'provisioner',
  projector: 'projector',
  webhooks: 'webhooks',
  process: 'every one',
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
    return `| \`${name}\` | ${kindOf(family)} | ${ownersOf(family)} | ${family.help} | ${words} |`;
  });
  return [...lines.slice(0, begin), ...rows, ...lines.slice(end)].join('\n');
}

/** A metric that is not in the document: its author adds its meaning. */
export const UNEXPLAINED = '(not explained yet)';

function kindOf({ kind, label }: Family): string {
  if (label === undefined) return kind;
  const values =
    typeof label.values === 'string' ? label.values : label.values.map((v) => `\`${v}\``).join(' ');
  return `${kind}; \`${label.name}\`: ${values}`;
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
