import type { DocumentSchema } from '#src/roles/api/docs/openapi-document.ts';
import type { Random } from './random.ts';

/** Texts that parsers, paths, subjects, keys and terminals have stumbled over. */
const texts = [
  '',
  ' ',
  '.',
  '..',
  '../../etc/passwd',
  '%2e%2e%2f',
  '%',
  '%00',
  '%ff',
  '\u0000',
  '\r\nX-Injected: yes',
  '*',
  '>',
  'evt.other.session.>',
  '$JS.API.STREAM.DELETE.EVENTS',
  '{}',
  '[]',
  'null',
  'undefined',
  'NaN',
  '-1',
  '1e999',
  '9007199254740993',
  '0x10',
  '__proto__',
  'constructor',
  '<script>alert(1)</script>',
  "'; DROP TABLE sessions; --",
  '${jndi:ldap://127.0.0.1/a}',
  '👩‍👩‍👧‍👦',
  '\ud800',
  'ﷺ'.repeat(40),
  'é́'.repeat(30),
  '2026-02-30T25:61:61Z',
  '1h60m',
  '25h',
  'Etc/GMT+99',
  'a'.repeat(300),
];

const numbers = [0, -0, -1, 1, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 0.1];

/** A text that a request may hold where another one is expected. */
export function hostileText(random: Random): string {
  return random.chance(0.2)
    ? random.bytes(1 + random.int(40)).toString('latin1')
    : random.pick(texts);
}

/** Any JSON value, nested up to some levels, sometimes deeply. */
export function hostileValue(random: Random, depth = 0): unknown {
  if (depth > 4) return null;
  switch (random.int(8)) {
    case 0:
      return random.pick(numbers);
    case 1:
      return random.chance(0.5);
    case 2:
      return null;
    case 3:
      return Array.from({ length: random.int(5) }, () => hostileValue(random, depth + 1));
    case 4:
      return Object.fromEntries(
        Array.from({ length: random.int(5) }, () => [
          hostileText(random),
          hostileValue(random, depth + 1),
        ]),
      );
    case 5:
      return Array.from({ length: 40 }).reduce<unknown>((inner) => [inner], 'deep');
    default:
      return hostileText(random);
  }
}

/** A value that fits the schema, or nearly: now and then a part of it is hostile. */
export function nearly(random: Random, schema: DocumentSchema, hostileShare: number): unknown {
  if (random.chance(hostileShare)) return hostileValue(random);
  const examples = schema.examples ?? schema.enum ?? [];
  if (schema.const !== undefined) return schema.const;
  if (examples.length > 0) return random.pick(examples);
  const [choice] = schema.anyOf === undefined ? [] : [random.pick(schema.anyOf)];
  if (choice !== undefined) return nearly(random, choice, hostileShare);
  switch (Array.isArray(schema.type) ? random.pick(schema.type) : schema.type) {
    case 'object':
      return nearlyObject(random, schema, hostileShare);
    case 'array':
      return Array.from({ length: random.int(3) }, () =>
        nearly(random, schema.items ?? {}, hostileShare),
      );
    case 'integer':
    case 'number':
      return random.chance(0.8) ? random.int(100) : random.pick(numbers);
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    default:
      return random.chance(0.7) ? 'text' : hostileText(random);
  }
}

function nearlyObject(random: Random, schema: DocumentSchema, hostileShare: number): unknown {
  const fields = Object.entries(schema.properties ?? {})
    .filter(([name]) => schema.required?.includes(name) === true || random.chance(0.3))
    .map(([name, field]) => [name, nearly(random, field, hostileShare)]);
  if (random.chance(hostileShare)) fields.push([hostileText(random), hostileValue(random)]);
  return Object.fromEntries(fields) as unknown;
}
