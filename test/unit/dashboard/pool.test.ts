import { describe, expect, it } from 'vitest';
import {
  endOf,
  indexAt,
  RANGES,
  rangeOf,
  sentenceOfPoint,
  seriesQuery,
  withNow,
  type Point,
} from '#src/apps/dashboard/pool/series.ts';
import { formatBytes, formatEstimate, formatShare } from '#src/apps/dashboard/pool/units.ts';

const NOON = Date.parse('2026-11-20T12:00:00.000Z');
const HOUR = rangeOf('1h');

function point(ms: number, more: Partial<Point> = {}): Point {
  const at = new Date(ms).toISOString();
  const none = { total: 0, idle: 0, busy: 0, provisioning: 0, launching: 0, terminating: 0 };
  return { at, ...none, waiting: 0, ...more };
}

describe('the chart’s window', () => {
  it('is an hour unless the address names another', () => {
    expect(rangeOf(null)).toBe(HOUR);
    expect(rangeOf('a week')).toBe(HOUR);
    expect(rangeOf('7d').title).toBe('7 d');
  });

  it('ends at the last step before now', () => {
    expect(endOf(null, HOUR, NOON + 29_999)).toBe(NOON);
    expect(seriesQuery(NOON, HOUR, false)).toBe('?from=2026-11-20T11:00:00.000Z&step=30');
  });

  it('has a past moment in its middle, a recent one before now', () => {
    const minute = 60_000;
    expect(endOf(NOON - 600 * minute, HOUR, NOON)).toBe(NOON - 570 * minute);
    expect(endOf(NOON - minute, HOUR, NOON)).toBe(NOON);
    expect(seriesQuery(NOON, HOUR, true)).toContain('&to=2026-11-20T12:00:00.000Z');
  });

  it('never has more points than the service answers', () => {
    for (const { ms, stepMs } of RANGES) expect(ms / stepMs).toBeLessThan(500);
  });
});

describe('points', () => {
  const points = [point(NOON), point(NOON + 30_000)];

  it('hold until the next one', () => {
    expect(indexAt(points, NOON + 29_999)).toBe(0);
    expect(indexAt(points, NOON + 30_000)).toBe(1);
    expect(indexAt(points, NOON - 1)).toBe(-1);
  });

  it('end with now, if that is newer', () => {
    const now = point(NOON + 40_000, { idle: 2 });
    expect(withNow(points, now)).toEqual([...points, now]);
    expect(withNow(points, point(NOON))).toBe(points);
    expect(withNow(points, null)).toBe(points);
  });

  it('are sentences', () => {
    expect(sentenceOfPoint(point(NOON, { total: 3, idle: 1, busy: 2, waiting: 1 }))).toBe(
      '3 browsers: 1 idle, 2 busy. 1 session waits.',
    );
    expect(sentenceOfPoint(point(NOON))).toBe('0 browsers. 0 sessions wait.');
  });
});

it('numbers have units', () => {
  expect([formatBytes(268_435_456), formatBytes(8_000_000_000)]).toEqual(['256 MiB', '7.5 GiB']);
  expect([formatEstimate(12), formatEstimate(600)]).toEqual(['about 12 s', 'about 10 min']);
  expect(formatShare(0.125)).toBe('13 %');
});
