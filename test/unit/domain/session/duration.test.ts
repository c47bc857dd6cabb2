import * as fc from 'fast-check';
import { inspect } from 'node:util';
import { describe, expect, it, test } from 'vitest';
import {
  DURATION_DEFAULT_MS,
  DURATION_MAX_MS,
  DURATION_MIN_MS,
  formatDuration,
  minutesOf,
  parseDuration,
} from '#src/kernel/domain/session/duration.ts';
import { HOUR, MINUTE, SECOND } from '#test/support/examples.ts';

describe('a duration is hours, minutes or both', () => {
  test.each([
    ['30m', 30 * MINUTE],
    ['1h', HOUR],
    ['1h30m', 90 * MINUTE],
    ['2h30m', 150 * MINUTE],
    ['90m', 90 * MINUTE],
    ['1h60m', 2 * HOUR],
    ['1m', MINUTE],
    ['24h', 24 * HOUR],
    ['1440m', 24 * HOUR],
    ['23h60m', 24 * HOUR],
    ['0h30m', 30 * MINUTE],
    ['24h0m', 24 * HOUR],
  ])('%s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe('any other value is invalid', () => {
  const names = ['0m', '0h', '90s', '1.5h', '-1h', '+1h', '25h', '60m1h', '1H', '30M', '1441m'];
  const shapes = ['24h1m', ' 1h', '1h ', '1h 30m', '1h\n', '', 'h', 'm', '1', '60', '1h1h', '1d'];
  const odd = ['1hm', '١h', '1h30', '1e2m', '0x10m', '99999999999999999999h', '00001h', 'PT1H'];
  const types = [
    60,
    0,
    -1,
    Number.NaN,
    3_600_000n,
    null,
    undefined,
    true,
    {},
    [],
    ['1h'],
    () => '1h',
  ];
  const boxed = { toString: () => '1h' };
  const values = [...names, ...shapes, ...odd, ...types, boxed];
  test.each(values.map((value) => ({ value, shown: inspect(value) })))('$shown', ({ value }) => {
    expect(parseDuration(value)).toBeNull();
  });
});

describe('bounds', () => {
  it('are one minute and 24 hours, with a default of two hours', () => {
    expect([DURATION_MIN_MS, DURATION_MAX_MS, DURATION_DEFAULT_MS]).toEqual([
      MINUTE,
      24 * HOUR,
      2 * HOUR,
    ]);
  });

  it('hold for every text that parses', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\d{0,5}h?\d{0,5}m?$/), (text) => {
        const ms = parseDuration(text);
        if (ms !== null) expect(ms >= MINUTE && ms <= 24 * HOUR && ms % MINUTE === 0).toBe(true);
      }),
    );
  });
});

describe('a formatted duration', () => {
  it('parses to the same time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1440 }), (minutes) => {
        expect(parseDuration(formatDuration(minutes * MINUTE))).toBe(minutes * MINUTE);
      }),
    );
  });

  test.each([
    [30 * MINUTE, '30m'],
    [HOUR, '1h'],
    [90 * MINUTE, '1h30m'],
    [29 * MINUTE + 1, '30m'],
  ])('%i ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe('minutes are whole and rounded up', () => {
  test.each([
    [0, 0],
    [-5 * SECOND, 0],
    [1, 1],
    [MINUTE, 1],
    [MINUTE + 1, 2],
    [2 * HOUR, 120],
  ])('%i ms count as %i', (ms, minutes) => {
    expect(minutesOf(ms)).toBe(minutes);
  });
});
