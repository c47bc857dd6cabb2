import { describe, expect, it } from 'vitest';
import { PAGE_NAMES, PAGES, placeOf } from '#src/dashboard/pages.ts';
import { momentOf, textOf } from '#src/dashboard/shell/moment-text.ts';

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
