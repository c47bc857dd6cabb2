import type { PoolDecision, PoolInputs } from '#events/pool.ts';
import { formatSpan } from '../shell/time.tsx';
import { formatBytes, formatShare } from './units.ts';

/** A decision of GET /api/operator/pool/decisions. */
export type Decision = {
  sequence: number;
  time: string;
  server_id: string;
  policy: number;
  inputs: PoolInputs;
  decision: PoolDecision;
};

const browsers = (count: number) => (count === 1 ? '1 browser' : `${count} browsers`);

/** What was decided, in words: the target before and after, what follows, and what limits it. */
export function sentenceOfDecision({ inputs, decision }: Pick<Decision, 'inputs' | 'decision'>) {
  const { target, launch, retire, limitedBy } = decision;
  const kept =
    target === inputs.target
      ? `Keep ${browsers(target)} idle, as before`
      : `Keep ${browsers(target)} idle, not ${inputs.target}`;
  return [
    kept,
    ...(launch > 0 ? [`launch ${launch}`] : []),
    ...(retire > 0 ? [`retire ${retire}`] : []),
    ...(limitedBy === null ? [] : [`limited by ${limitedBy}`]),
    ...(inputs.isDraining ? ['the server drains'] : []),
  ].join('; ');
}

type Kind = 'count' | 'ms' | 'bytes' | 'share' | 'time' | 'word';

const NAMES: Readonly<Record<Exclude<keyof PoolInputs, 'bursts'>, [string, Kind]>> = {
  isDraining: ['Draining', 'word'],
  idle: ['Idle browsers', 'count'],
  busy: ['Busy browsers', 'count'],
  launching: ['Being launched', 'count'],
  spare: ['Being launched to stay idle', 'count'],
  ending: ['Being ended', 'count'],
  waiting: ['Requests without a browser', 'count'],
  unserved: ['Requests without a launch', 'count'],
  arrivals10s: ['Requests in 10 s', 'count'],
  arrivals60s: ['Requests in 60 s', 'count'],
  launchMs: ['Median launch', 'ms'],
  minIdle: ['Least idle browsers', 'count'],
  maxIdle: ['Most idle browsers', 'count'],
  max: ['Most browsers', 'count'],
  launchesAtOnce: ['Most launches at once', 'count'],
  memoryFreeBytes: ['Free memory', 'bytes'],
  browserBytes: ['Memory of a browser', 'bytes'],
  cpuPressure: ['Waited for a core', 'share'],
  target: ['Target before', 'count'],
  limitedBy: ['Limit before', 'word'],
  calmMs: ['Less demand than target for', 'ms'],
  calmPeak: ['Most demand in that time', 'count'],
  surplusMs: ['More idle than target for', 'ms'],
  now: ['Decided at', 'time'],
};

const WORDS: Readonly<Record<string, string>> = {
  true: 'yes',
  false: 'no',
  null: 'none',
  memory: 'memory',
  cpu: 'CPU',
};

/** The inputs in words and units; bursts by their number. */
export function factsOfInputs(inputs: PoolInputs): [name: string, value: string][] {
  const facts = Object.entries(NAMES).flatMap(([key, [name, kind]]): [string, string][] => {
    const value = inputs[key as keyof typeof NAMES];
    return value === undefined ? [] : [[name, valueOf(value, kind)]];
  });
  const { bursts } = inputs;
  if (bursts === undefined) return facts;
  const { underWay, recent } = bursts;
  return [
    ...facts,
    ['Burst under way', underWay === null ? 'none' : `${underWay.size} requests`],
    ['Bursts remembered', `${recent.length}`],
  ];
}

function valueOf(value: string | number | boolean | null, kind: Kind): string {
  if (typeof value !== 'number')
    return value === null && kind !== 'word' ? 'unknown' : (WORDS[`${value}`] ?? `${value}`);
  switch (kind) {
    case 'ms':
      return formatSpan(value);
    case 'bytes':
      return formatBytes(value);
    case 'share':
      return formatShare(value);
    case 'time':
      return new Date(value).toISOString();
    case 'count':
    case 'word':
      return `${value}`;
  }
}

/** Two pages of decisions as one, newest first, each decision once. */
export function merged(newer: readonly Decision[], older: readonly Decision[]): Decision[] {
  const bySequence = new Map([...older, ...newer].map((one) => [one.sequence, one]));
  return [...bySequence.values()].toSorted((a, b) => b.sequence - a.sequence);
}
