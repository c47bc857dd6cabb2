/** A line of the metrics: its full name, its labels, its value. */
export type Sample = { name: string; labels: Record<string, string>; value: number };
export type TextFamily = { name: string; type: string; help: string; samples: Sample[] };

const COMMENT = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)$/;
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/gy;

/** Parses Prometheus' text format 0.0.4. @throws Error at the first invalid line */
export function parseMetrics(text: string): Map<string, TextFamily> {
  const families = new Map<string, TextFamily>();
  let current: TextFamily | null = null;
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, word, name = '', rest = ''] = COMMENT.exec(line) ?? [];
    if (word === 'HELP') {
      if (families.has(name)) throw new Error(`${name} twice`);
      current = { name, type: '', help: rest, samples: [] };
      families.set(name, current);
    } else if (word === 'TYPE') {
      if (current?.name !== name) throw new Error(`${name} has a type and no help`);
      current.type = rest;
    } else {
      const sample = parseSample(line);
      if (current === null || !sample.name.startsWith(current.name))
        throw new Error(`${sample.name} is in no family`);
      current.samples.push(sample);
    }
  }
  return families;
}

function parseSample(line: string): Sample {
  const [, name = '', inside = '', value = ''] = SAMPLE.exec(line) ?? [];
  if (name === '') throw new Error(`no sample: ${line}`);
  const pairs = [...inside.matchAll(LABEL)].map(([, label = '', text = '']) => [label, text]);
  if (pairs.map(([label, text]) => `${label}="${text}"`).join(',') !== inside)
    throw new Error(`no labels: ${line}`);
  return {
    name,
    labels: Object.fromEntries(pairs) as Record<string, string>,
    value: numberOf(value),
  };
}

function numberOf(text: string): number {
  if (text === 'Nan' || text === 'NaN') return Number.NaN;
  if (/^[+-]Inf$/.test(text)) return text === '+Inf' ? Infinity : -Infinity;
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`no number: ${text}`);
  return value;
}

/** The metrics of one process, parsed. */
export type Scraped = {
  families: Map<string, TextFamily>;
  text: string;
  /** The value of the sample with exactly these labels; undefined if there is none. */
  value(name: string, labels?: Record<string, string>): number | undefined;
};

/** @throws Error if it does not answer 200 */
export async function scrape(url: string, token?: string): Promise<Scraped> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/metrics`, { headers });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  const families = parseMetrics(text);
  const samples = [...families.values()].flatMap((family) => family.samples);
  return {
    families,
    text,
    value: (name, labels = {}) =>
      samples.find((sample) => sample.name === name && isSame(sample.labels, labels))?.value,
  };
}

function isSame(one: Record<string, string>, other: Record<string, string>): boolean {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => one[name] === other[name]);
}
