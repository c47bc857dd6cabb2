import { Type, type TSchema } from 'typebox';
import { describe, expect, it, test } from 'vitest';
import {
  incompatibilities,
  loosenings,
  type Schema,
} from '#test/support/events/schema-compatibility.ts';

const word = (...words: string[]) => Type.Union(words.map((each) => Type.Literal(each)));
const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const size = Type.Object({ width: Type.Integer() });

function judge(before: TSchema, after: TSchema): string[] {
  return incompatibilities(before as Schema, after as Schema);
}

function judgeField(before: TSchema, after: TSchema): string[] {
  return judge(Type.Object({ field: before }), Type.Object({ field: after }));
}

describe('a change of an event that only adds', () => {
  test.each([
    ['nothing', Type.String(), Type.String()],
    ['a description', Type.String(), Type.String({ description: 'for people' })],
    ['another word', word('user', 'idle'), word('user', 'idle', 'expired')],
    ['a looser lower bound', Type.Integer({ minimum: 1 }), Type.Integer({ minimum: 0 })],
    ['a looser upper bound', Type.String({ maxLength: 8 }), Type.String({ maxLength: 9 })],
    ['freedom from a bound', Type.String({ maxLength: 8 }), Type.String()],
    ['freedom from a pattern', Type.String({ pattern: '^a$' }), Type.String()],
    [
      'an optional field, deep inside',
      nullable(size),
      nullable(Type.Object({ width: Type.Integer(), height: Type.Optional(Type.Integer()) })),
    ],
  ])('may be %s', (_, before, after) => {
    expect(judgeField(before, after)).toEqual([]);
  });

  it('may be an optional field', () => {
    const after = Type.Object({ a: Type.String(), b: Type.Optional(Type.String()) });
    expect(judge(Type.Object({ a: Type.String() }), after)).toEqual([]);
  });
});

describe('a change of an event that needs a new version', () => {
  test.each([
    ['a changed type', Type.String(), Type.Integer(), 'was string and is integer'],
    ['a number for an integer', Type.Integer(), Type.Number(), 'was integer and is number'],
    ['null where there was none', Type.String(), nullable(Type.String()), 'may now be null'],
    ['no null any more', nullable(Type.String()), Type.String(), 'no longer takes "null"'],
    ['a word less', word('user', 'idle'), word('user'), 'no longer takes "idle"'],
    ['a word for any text', Type.String(), word('user'), 'const is now "user"'],
    ['words for any text', Type.String(), word('user', 'idle'), 'const is now "user"'],
    ['a narrower bound', Type.Integer(), Type.Integer({ minimum: 0 }), 'minimum narrowed to 0'],
    [
      'a shorter text',
      Type.String({ maxLength: 9 }),
      Type.String({ maxLength: 8 }),
      'maxLength narrowed to 8',
    ],
    ['a pattern', Type.String(), Type.String({ pattern: '^a$' }), 'pattern is now "^a$"'],
    ['a keyword unknown here', Type.String(), Type.Unsafe({ type: 'string', not: {} }), 'not is'],
    [
      'other elements of a list',
      Type.Array(Type.String()),
      Type.Array(Type.Integer()),
      'data.field[] was string and is integer',
    ],
    [
      'other values in a map',
      Type.Record(Type.String(), Type.String()),
      Type.Record(Type.String(), Type.Integer()),
      'data.field.* was string and is integer',
    ],
    [
      'a required field, deep inside',
      nullable(size),
      nullable(Type.Object({ width: Type.Integer(), height: Type.Integer() })),
      'data.field.height is newly required',
    ],
  ])('is %s', (_, before, after, reason) => {
    const reasons = judgeField(before, after);
    expect(reasons.join('\n')).toContain(reason);
    expect(reasons.join('\n')).toContain('data.field');
  });

  const a = Type.String();
  test.each([
    ['a removed field', { a, b: a }, { a }, 'data.b was removed'],
    ['a new field that must be there', { a }, { a, b: a }, 'data.b is newly required'],
    ['a field that must be there now', { b: Type.Optional(a) }, { b: a }, 'data.b is newly'],
    ['a field that need not be there now', { b: a }, { b: Type.Optional(a) }, 'no longer always'],
  ])('is %s', (_, before, after, reason) => {
    expect(judge(Type.Object(before), Type.Object(after)).join('\n')).toContain(reason);
  });
});

describe('what older builds refuse', () => {
  const judge = (before: TSchema, after: TSchema) => {
    const [old, now] = [before, after].map((field) => Type.Object({ field }) as unknown as Schema);
    return loosenings(old ?? {}, now ?? {});
  };

  test.each([
    ['another word', word('user', 'idle'), word('user', 'idle', 'expired')],
    ['a looser lower bound', Type.Integer({ minimum: 1 }), Type.Integer({ minimum: 0 })],
    ['a looser upper bound', Type.String({ maxLength: 8 }), Type.String({ maxLength: 9 })],
    ['freedom from a pattern', Type.String({ pattern: '^a$' }), Type.String()],
    ['null where there was none', Type.String(), nullable(Type.String())],
  ])('is %s', (_, before, after) => {
    expect(judge(before, after)).not.toEqual([]);
  });

  it('is not a field that they do not know', () => {
    const wider = Type.Object({ width: Type.Integer(), height: Type.Optional(Type.Integer()) });
    expect(judge(size, wider)).toEqual([]);
  });
});
