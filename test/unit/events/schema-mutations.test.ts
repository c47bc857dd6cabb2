import { Compile } from 'typebox/compile';
import type { TSchema } from 'typebox';
import { describe, expect, it, test } from 'vitest';
import { dataVersion } from '#events/upcast.ts';
import { readMessage, todaysSchemas, todaysStates } from '#test/support/events/golden-files.ts';
import { incompatibilities, type Schema } from '#test/support/events/schema-compatibility.ts';
import { adding, breaking } from '#test/support/events/schema-mutations.ts';

/** Every schema of stored data, to be changed in every way at every place. */
const schemas: (readonly [string, Schema])[] = [
  ...todaysSchemas,
  ...[...todaysStates].map(
    ([kind, state]) => [`state of a ${kind}`, lessAlternatives(state)] as const,
  ),
];

/** A session's state has one alternative per status, all much alike: two of them represent all. */
function lessAlternatives(state: Schema): Schema {
  const { anyOf } = state;
  return Array.isArray(anyOf) ? { ...state, anyOf: anyOf.slice(1, 3) } : state;
}

describe('a breaking change is found at every place:', () => {
  test.each(schemas)('%s', (_, schema) => {
    const missed = [...breaking(schema)]
      .filter(({ after }) => incompatibilities(schema, after).length === 0)
      .map(({ what }) => what);
    expect(missed).toEqual([]);
  });
});

describe('a change that only adds is accepted at every place:', () => {
  test.each(schemas)('%s', (_, schema) => {
    const refused = [...adding(schema)].flatMap(({ what, after }) =>
      incompatibilities(schema, after).map((reason) => `${what}: ${reason}`),
    );
    expect(refused).toEqual([]);
  });

  test.each([...todaysSchemas])('%s, and the recorded data still fits', (type, schema) => {
    const { data } = readMessage(type, dataVersion(type)).body;
    for (const { what, after } of adding(schema))
      expect(Compile(after as TSchema).Check(data), what).toBe(true);
  });
});

it('every kind of change was tried', () => {
  const kinds = new Set(
    schemas.flatMap(([, schema]) =>
      [...breaking(schema)].map(({ what }) => what.replace(/^.*: /, '')),
    ),
  );
  for (const kind of [
    'any number',
    'anything at all',
    'may be null',
    'a higher minLength',
    'a lower maximum',
    'another pattern',
    'another word',
    'no null any more',
    'a new field that must be there',
    'closed to fields that are not known',
  ])
    expect([...kinds]).toContain(kind);
});
