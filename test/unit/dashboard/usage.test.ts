import { describe, expect, it } from 'vitest';
import { daysOf, partsOf, rangeOf } from '#src/apps/dashboard/usage/ranges.ts';

const NOW = Date.parse('2026-11-24T10:30:00.000Z');

describe('the range of usage', () => {
  it('is the month until now, unless the address or the moment says otherwise', () => {
    const none = new URLSearchParams();
    const from = '2026-11-01T00:00:00.000Z';
    expect(rangeOf(none, null, NOW)).toEqual({ from, to: '2026-11-24T10:30:00.000Z' });
    const at = '2026-10-05T12:00:00.000Z';
    expect(rangeOf(none, at, NOW)).toEqual({ from: '2026-10-01T00:00:00.000Z', to: at });
    const named = new URLSearchParams('from=2026-11-03&to=nonsense');
    expect(rangeOf(named, null, NOW).from).toBe('2026-11-03T00:00:00.000Z');
  });

  it('has adjacent parts, which are days, or more days together if there are many', () => {
    const from = '2026-11-01T06:00:00.000Z';
    const days = partsOf({ from, to: '2026-11-03T12:00:00.000Z' });
    expect(days.map(daysOf)).toEqual(['2026-11-01', '2026-11-02', '2026-11-03']);
    expect(days[0]?.from).toBe(from);
    const year = partsOf({ from: '2026-01-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z' });
    expect(year.length).toBeLessThanOrEqual(31);
    for (const [index, part] of year.slice(1).entries()) expect(part.from).toBe(year[index]?.to);
    expect(daysOf(year[0] ?? { from, to: from })).toBe('2026-01-01 to 2026-01-12');
    expect(partsOf({ from, to: from })).toEqual([]);
  });
});
