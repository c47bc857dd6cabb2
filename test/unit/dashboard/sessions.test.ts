import { describe, expect, it } from 'vitest';
import { createMessageParser } from '#src/apps/dashboard/live/event-stream.ts';
import { eachOf } from '#src/apps/dashboard/sessions/bounded.ts';
import { applyFilters, filtersOf, queryOf, toggled } from '#src/apps/dashboard/sessions/filters.ts';
import { stopFilterOf } from '#src/apps/dashboard/sessions/stop-filter.ts';
import { byCreation, formatTimeLeft, type Row } from '#src/apps/dashboard/sessions/rows.ts';

const row = (id: string, more: Partial<Row> = {}): Row => ({
  id,
  name: `name of ${id}`,
  status: 'active',
  createdAt: '2026-11-20T09:30:00.000Z',
  expiresAt: '2026-11-20T10:30:00.000Z',
  labels: null,
  userId: null,
  endedReason: null,
  ...more,
});

describe('the stream of events', () => {
  const text =
    'retry: 9\nid: 6\nid: 7\nevent: a\ndata: {"x":1}\n\n: heartbeat\nid: 8\ndata: {}\n\n' +
    ': heartbeat\nretry: 9\nevent: end\ndata: {"message":"Later."}\n\n';

  it('is the same messages in whatever parts it arrives', () => {
    const whole = createMessageParser()(text);
    expect(whole).toEqual([
      { id: '7', type: 'a', data: '{"x":1}' },
      { id: '8', type: '', data: '{}' },
      { id: '', type: 'end', data: '{"message":"Later."}' },
    ]);
    for (let size = 1; size < text.length; size += 1) {
      const parse = createMessageParser();
      const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
      expect(parts.flatMap(parse)).toEqual(whole);
    }
  });
});

describe('filters', () => {
  const rows = [
    row('ses_a', { labels: { team: 'a=b' } }),
    row('ses_b', { status: 'failed' }),
    row('ses_c', { name: 'Checkout' }),
  ];
  const shown = (query: string) =>
    applyFilters(rows, filtersOf(new URLSearchParams(query))).map(({ id }) => id);

  it('are the address, and the address is them', () => {
    const query = 'status=active&status=failed&label=team%3Da%3Db&q=x&sort=oldest';
    expect(queryOf(filtersOf(new URLSearchParams(query))).toString()).toBe(query);
    expect(queryOf(filtersOf(new URLSearchParams('status=nothing&label=x'))).toString()).toBe('');
  });

  it('are those of a stop only if the API stops what they show', () => {
    const stopped = (query: string) => stopFilterOf(filtersOf(new URLSearchParams(query)));
    expect(stopped('status=active&label=a%3Db&sort=oldest')).toEqual({
      status: 'active',
      label: ['a=b'],
    });
    expect(stopped('label=a%3Db')).toEqual({ label: ['a=b'] });
    for (const query of ['', 'status=failed', 'status=active&status=queued', 'status=active&q=x'])
      expect([query, stopped(query)]).toEqual([query, null]);
  });

  it('show what matches all of them', () => {
    expect(shown('')).toEqual(['ses_a', 'ses_b', 'ses_c']);
    expect(shown('status=failed')).toEqual(['ses_b']);
    expect(shown('status=failed&status=active&q=CHECK')).toEqual(['ses_c']);
    expect(shown('label=team%3Da%3Db')).toEqual(['ses_a']);
    expect(shown('label=team%3Da')).toEqual([]);
    expect(shown('sort=oldest')).toEqual(['ses_c', 'ses_b', 'ses_a']);
  });

  it('are added and removed', () => {
    expect(toggled(['a'], 'b')).toEqual(['a', 'b']);
    expect(toggled(['a', 'b'], 'a')).toEqual(['b']);
  });
});

describe('rows', () => {
  it('are newest first', () => {
    const later = row('ses_a', { createdAt: '2026-11-20T09:30:00.001Z' });
    expect([row('ses_b'), later, row('ses_c')].toSorted(byCreation).map(({ id }) => id)).toEqual([
      'ses_a',
      'ses_c',
      'ses_b',
    ]);
  });

  it.each([
    [0, 'now'],
    [59_000, '59 s'],
    [60_000, '1 min'],
    [3_600_000, '1 h 0 min'],
    [90_000_000, '1 d 1 h'],
  ])('tell %d ms as %s', (ms, words) => expect(formatTimeLeft(ms)).toBe(words));
});

it('work on many items is bounded, and done for each once', async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  await eachOf([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    done.push(item);
    running -= 1;
  });
  expect(most).toBe(3);
  expect(done.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7]);
});
