import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PAGE_NAMES, PAGES, placeOf } from '#src/roles/api/dashboard/pages.ts';
import { noteAllowance, untilUnitsAreSpare } from '#src/apps/dashboard/api/allowance.ts';
import { momentOf, textOf } from '#src/apps/dashboard/shell/moment-text.ts';

describe('pages', () => {
  it('are found by their address, with its parameters', () => {
    expect(placeOf('/')).toEqual({ name: 'sessions', parameters: {} });
    expect(placeOf('/sessions/ses_1')).toEqual({ name: 'session', parameters: { id: 'ses_1' } });
    expect(placeOf('/sessions/a%20b/')?.parameters).toEqual({ id: 'a b' });
    expect(placeOf('/sessions/%')?.parameters).toEqual({ id: '%' });
    for (const path of ['/sessions', '/sessions/a/b', '/nothing']) expect(placeOf(path)).toBe(null);
  });

  it('have addresses that no route of the API has', () => {
    const paths = PAGE_NAMES.map((name) => PAGES[name].path);
    expect(new Set(paths).size).toBe(paths.length);
    expect(paths.filter((path) => /^\/(api|docs|metrics|assets)/.test(path))).toEqual([]);
  });
});

describe('a moment', () => {
  it.each([
    ['17', { sequence: 17 }],
    ['2026-11-20T09:30:00Z', { time: '2026-11-20T09:30:00.000Z' }],
    ['', null],
    [null, null],
    ['0', null],
    ['-3', null],
    ['17 ', null],
    ['yesterday', null],
    ['2026-13-45T00:00:00Z', null],
  ])('%j is %j', (text, at) => {
    expect(momentOf(text)).toEqual(at);
    if (at !== null) expect(momentOf(textOf(at))).toEqual(at);
  });
});

describe('reading that no person waits for', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());
  const BEGIN = Date.parse('2026-11-20T09:30:00Z');
  /** Half a minute of the window is left, by a service whose clock is another. */
  const tell = (remaining: number, endsAt = BEGIN + 60_000) =>
    noteAllowance(
      new Headers({
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': String(remaining),
        'x-ratelimit-reset': String(endsAt / 1000),
        date: new Date(BEGIN + 30_000).toUTCString(),
      }),
    );
  const waited = async () => {
    const begun = Date.now();
    const spare = untilUnitsAreSpare();
    await vi.runAllTimersAsync();
    await spare;
    return Date.now() - begun;
  };

  it('goes on while more than half of the minute’s units are left, then waits for the next', async () => {
    expect(await waited()).toBe(0);
    tell(51);
    expect(await waited()).toBe(0);
    tell(50);
    const [first, second] = [waited(), waited()];
    expect([await first, await second]).toEqual([30_000, 30_000]);
    expect(await waited()).toBe(0);
  });

  it('keeps what it knows at an answer that tells no limit', async () => {
    tell(50);
    noteAllowance(new Headers());
    expect(await waited()).toBe(30_000);
  });

  it('waits a minute at most, whatever an answer tells', async () => {
    tell(50, BEGIN + 3_600_000);
    expect(await waited()).toBe(60_000);
  });
});
