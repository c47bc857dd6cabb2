import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { isOneLineJson } from '#src/features/archive/json-text.ts';
import { runs } from '#test/support/seeds/seeds.ts';

function judge(text: string): boolean {
  const bytes = Buffer.from(`:${text}:"`);
  return isOneLineJson(bytes, 1, bytes.length - 2);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('the check of JSON text', () => {
  it('accepts what JSON.stringify writes', () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 5 }), (v) => judge(JSON.stringify(v))));
  });

  it('accepts nothing that JSON.parse refuses, and refuses nothing on one line that it takes', () => {
    const pieces = [
      ...Array.from('{}[]:,"\\ \t-+.eE0129aftu'),
      'true',
      'null',
      '"a"',
      '\\u00e9',
      'ü',
      '\u0000',
    ];
    const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 12 });
    fc.assert(
      fc.property(texts, (parts) => {
        const text = parts.join('');
        expect([text, judge(text)]).toEqual([text, isJson(text)]);
      }),
      { numRuns: runs(20_000) },
    );
  });

  it('judges a value with one character changed like JSON.parse', () => {
    const character = fc.constantFrom(...Array.from('{}[]:,"\\ -+.e0a\u0001é'));
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), character, (value, place, other) => {
        const text = JSON.stringify(value);
        const at = place % text.length;
        const changed = text.slice(0, at) + other + text.slice(at + 1);
        // Half of a pair: such a text has no bytes of its own.
        if (changed.isWellFormed()) expect(judge(changed)).toBe(isJson(changed));
      }),
      { numRuns: runs(5_000) },
    );
  });

  test.each(['{"a":1}\n', '[1,\r2]', '', '"open', '{"a":', '01', '1.', '.5', '1e', 'nul', '[1]]'])(
    'refuses %j',
    (text) => {
      expect(judge(text)).toBe(false);
    },
  );

  it('leaves a deeply nested value to JSON.parse', () => {
    expect(judge('['.repeat(90) + ']'.repeat(90))).toBe(true);
    expect(judge('['.repeat(5_000) + ']'.repeat(5_000))).toBe(false);
  });
});
