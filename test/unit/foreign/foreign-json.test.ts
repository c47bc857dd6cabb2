import { expect, test } from 'vitest';
import { parseForeignJson } from '#src/kernel/foreign/foreign-json.ts';

const MIB = 1024 ** 2;
const bounds = { bytesMax: 8 * MIB };

test('a text and its bytes say the same, a byte order mark says nothing', () => {
  const value = { a: ['Zürich ☃', { b: '"\\[' }], n: -1.5 };
  const text = JSON.stringify(value);
  expect(parseForeignJson(text, bounds)).toEqual(value);
  expect(parseForeignJson(Buffer.from(text), bounds)).toEqual(value);
  expect(parseForeignJson(Buffer.from(`\uFEFF${text}`), bounds)).toEqual(value);
});

test('no JSON is another error than too much of it', () => {
  expect(() => parseForeignJson('{', bounds)).toThrow(SyntaxError);
  expect(() => parseForeignJson('"abc"', { bytesMax: 4 })).toThrow(RangeError);
  expect(parseForeignJson('"ab"', { bytesMax: 4 })).toBe('ab');
});

test('a long text of small values is refused before it is parsed', () => {
  for (const values of ['[],', '{},', '1,', '"",'])
    expect(() => parseForeignJson(`[${values.repeat(2 * MIB)}0]`, bounds)).toThrow(
      /more than 200000 values/,
    );
});

test('one long text is one value, whatever it holds', () => {
  const text = '[],{}\\",☃'.repeat(MIB / 2);
  expect(parseForeignJson(JSON.stringify({ text }), bounds)).toEqual({ text });
});

test('a shorter text has fewer values in any case', () => {
  const text = `[${'[],'.repeat(66_000)}0]`;
  expect(text.length).toBeLessThan(200_000);
  expect(parseForeignJson(text, bounds)).toHaveLength(66_001);
});

test('depth is bounded where it is asked for, and that of brackets in a text does not count', () => {
  const nested = (depth: number) => `${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`;
  expect(parseForeignJson(nested(2), { ...bounds, depthMax: 4 })).toEqual([{ a: [{ a: 1 }] }]);
  expect(() => parseForeignJson(nested(3), { ...bounds, depthMax: 4 })).toThrow(/deeper than 4/);
  expect(() => parseForeignJson('['.repeat(MIB), { ...bounds, depthMax: 4 })).toThrow(/deeper/);
  expect(parseForeignJson('["[[[[[[\\"[["]', { ...bounds, depthMax: 1 })).toEqual(['[[[[[["[[']);
});
