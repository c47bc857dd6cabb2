import { Compile } from 'typebox/schema';
import { describe, expect, it, test } from 'vitest';
import type { AsyncApiDocument, DocumentSchema } from '#events/asyncapi/document.ts';
import { aggregates } from '#events/events.ts';
import { meanings } from '#events/meanings.ts';
import { isPublic } from '#events/public-event.ts';
import { readText } from '#test/support/sources/source-files.ts';
import { readAsyncApi } from '#src/roles/api/docs/asyncapi.ts';

const document = await readAsyncApi();
const types = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
const organizations = types.filter(isPublic);
const delivered = types.filter(
  (type) => isPublic(type) || /^(server|workload|archive)\./.test(type),
);
const { messages, schemas } = document.components;

describe('the document', () => {
  it('has every delivered event in both forms, each in a channel, and no other message', () => {
    const expected = delivered.flatMap((type) => [type, `${type}.binary`]);
    expect(Object.keys(messages).toSorted()).toEqual(expected.toSorted());
    const carried = Object.values(document.channels).flatMap((channel) =>
      Object.keys((channel as { messages: object }).messages),
    );
    expect(new Set(carried)).toEqual(
      new Set([...organizations, ...delivered.map((type) => `${type}.binary`)]),
    );
  });

  it('has no dangling reference', () => {
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g);
    let count = 0;
    for (const [, path = ''] of references) {
      count += 1;
      let found: unknown = document;
      for (const key of path.split('/')) found = (found as Record<string, unknown>)[key];
      expect(found, path).toBeDefined();
    }
    expect(count).toBeGreaterThan(200);
  });

  it('describes the parameters of every address, and has an operation for each channel', () => {
    for (const channel of Object.values(document.channels)) {
      const { address, parameters = {} } = channel as { address: string; parameters?: object };
      const named = [...address.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(Object.keys(parameters)).toEqual(named);
    }
    expect(Object.keys(document.operations)).toHaveLength(Object.keys(document.channels).length);
  });
});

describe.each(delivered)('%s', (type) => {
  it('is documented: when, by which part, each field, and a valid example', () => {
    const message = messages[type];
    expect(message?.summary).toMatch(/^[A-Z].+\.$/);
    expect(message?.['x-emitted-by']).toMatch(/\w/);
    for (const form of [type, `${type}.binary`]) {
      const { payload = {}, examples = [] } = messages[form] ?? {};
      const validator = compile(payload, document);
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        const [isValid, flaws] = [
          validator.Check(example.payload),
          validator.Errors(example.payload),
        ];
        expect([isValid, flaws[1]]).toEqual([true, []]);
      }
    }
    expect(undescribed(schemas[type] ?? {}, 'data')).toEqual([]);
  });
});

it.each(types)('%s has the same emitter as in the README', (type) => {
  const row = readText('events/README.md')
    .split('\n')
    .find((line) => line.startsWith(`| \`${type}\` |`));
  expect(row?.split('|')[2]?.trim()).toBe(meanings[type]?.by);
});

test('an internal event is not in the document', () => {
  for (const kind of ['session', 'ledger', 'organization'])
    expect(JSON.stringify(document)).not.toContain(`${kind}.carried-forward`);
});

test('there is no meaning of an event that does not exist', () => {
  expect(Object.keys(meanings).toSorted()).toEqual(types.toSorted());
});

function compile(schema: DocumentSchema, { components }: AsyncApiDocument) {
  return Compile({ components, ...schema });
}

/** Fields of an object, at any depth, without a description. */
function undescribed(schema: DocumentSchema, path: string): string[] {
  const alternatives = (schema['anyOf'] ?? []) as DocumentSchema[];
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, DocumentSchema>);
  return [
    ...alternatives.flatMap((one) => undescribed(one, path)),
    ...properties.flatMap(([name, one]) => [
      ...(one['description'] === undefined ? [`${path}.${name}`] : []),
      ...undescribed(one, `${path}.${name}`),
    ]),
  ];
}
