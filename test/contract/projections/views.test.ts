import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Views } from '#projections/store/views.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { keysOf, removal, textOf, view, viewStores } from '#test/support/stores/view-stores.ts';

describe.each(viewStores)('views in $adapter', ({ open }) => {
  let views: Views;
  beforeAll(async () => {
    views = await open();
  });
  afterAll(() => views[Symbol.asyncDispose]());

  test('a new store has no checkpoint, no view and no list', async () => {
    const p = freshId('views');
    expect(await views.checkpoint(p)).toBe(0);
    expect(await views.read(p, 'a')).toBeNull();
    expect(await views.readWithCheckpoint(p, 'a')).toEqual({ view: null, checkpoint: 0 });
    expect(await views.readMany(p, [])).toEqual([]);
    const empty = { items: '', total: 0, checkpoint: 0 };
    expect(await views.page(p, { lists: ['all'], offset: 0, limit: 20 })).toEqual(empty);
    expect(await views.counts(p, ['all', 'open'])).toEqual([0, 0]);
    expect(await views.counts(p, [])).toEqual([]);
    expect(await views.rank(p, 'all', 'a')).toBeNull();
    expect(views.isReachable()).toBe(true);
  });

  test('a batch writes its views and moves the checkpoint', async () => {
    const p = freshId('views');
    const writes = [view('a', 3), view('b', 7)];
    expect(await views.write(p, { after: 0, upTo: 9, writes })).toBe(9);
    expect(await views.checkpoint(p)).toBe(9);
    expect(await views.read(p, 'a')).toBe(textOf('a', 3));
    expect(await views.readMany(p, ['b', 'none', 'a'])).toEqual([
      textOf('b', 7),
      null,
      textOf('a', 3),
    ]);
  });

  test('reads at the same time get each their own view, and the checkpoint of its projection', async () => {
    const [p, q] = [freshId('views'), freshId('views')];
    const keys = Array.from({ length: 250 }, (_, n) => `k${n}`);
    const writes = keys.map((key, n) => view(key, n + 1));
    await views.write(p, { after: 0, upTo: 300, writes });
    await views.write(q, { after: 0, upTo: 7, writes: [view('k0', 5)] });
    const asked = [...keys, 'none'].flatMap((key) => [
      views.readWithCheckpoint(p, key),
      views.readWithCheckpoint(q, key),
    ]);
    const expected = [...keys, 'none'].flatMap((key, n) => [
      { view: key === 'none' ? null : textOf(key, n + 1), checkpoint: 300 },
      { view: key === 'k0' ? textOf(key, 5) : null, checkpoint: 7 },
    ]);
    expect(await Promise.all(asked)).toEqual(expected);
  });

  test('projections do not see each other', async () => {
    const [p, q] = [freshId('views'), freshId('views')];
    await views.write(p, { after: 0, upTo: 1, writes: [view('a', 1, ['all'])] });
    expect(await views.read(q, 'a')).toBeNull();
    expect(await views.counts(q, ['all'])).toEqual([0]);
    expect(await views.checkpoint(q)).toBe(0);
  });

  test('a batch without views moves the checkpoint; an empty range leaves it', async () => {
    const p = freshId('views');
    expect(await views.write(p, { after: 0, upTo: 4, writes: [] })).toBe(4);
    expect(await views.write(p, { after: 4, upTo: 4, writes: [] })).toBe(4);
  });

  test('a batch that is written in parts moves the checkpoint with the last of them', async () => {
    const p = freshId('views');
    const batch = { after: 0, upTo: 9 };
    const part = { ...batch, writes: [view('a', 3, ['all']), view('b', 8)], isPart: true };
    expect(await views.write(p, part)).toBe(0);
    expect(await views.checkpoint(p)).toBe(0);
    // Tried again, because its answer was lost.
    expect(await views.write(p, part)).toBe(0);
    expect(await views.write(p, { ...batch, writes: [view('c', 9, ['all'])] })).toBe(9);
    expect(await views.readMany(p, ['a', 'b', 'c'])).toEqual([
      textOf('a', 3),
      textOf('b', 8),
      textOf('c', 9),
    ]);
    expect(await views.counts(p, ['all'])).toEqual([2]);
    expect(await views.write(p, part)).toBe(9);
    expect(await views.write(p, { after: 20, upTo: 30, writes: [], isPart: true })).toBe(9);
  });

  test('a batch that another projector has already written changes nothing', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 9, ['new'])] });
    const late = { after: 0, upTo: 5, writes: [view('a', 5, ['old']), view('b', 3, ['old'])] };
    expect(await views.write(p, late)).toBe(9);
    expect(await views.readMany(p, ['a', 'b'])).toEqual([textOf('a', 9), null]);
    expect(await views.counts(p, ['new', 'old'])).toEqual([1, 0]);
  });

  test('a batch that overlaps with another projector’s adds only what is beyond it', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 5, writes: [view('a', 5, ['all']), view('b', 2)] });
    const longer = { after: 0, upTo: 8, writes: [view('a', 4, ['old']), view('b', 8, ['all'])] };
    expect(await views.write(p, longer)).toBe(8);
    expect(await views.readMany(p, ['a', 'b'])).toEqual([textOf('a', 5), textOf('b', 8)]);
    expect(await views.counts(p, ['all', 'old'])).toEqual([2, 0]);
  });

  test('a view that another projector has removed does not come back', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 2, writes: [view('a', 2, ['all'])] });
    await views.write(p, { after: 2, upTo: 6, writes: [removal('a', 6)] });
    const late = { after: 2, upTo: 7, writes: [view('a', 5, ['all']), view('b', 7, ['all'])] };
    expect(await views.write(p, late)).toBe(7);
    expect(await views.read(p, 'a')).toBeNull();
    expect(await keysOf(views, p, ['all'])).toEqual(['b']);
  });

  test('a batch after a checkpoint that the store has lost writes nothing', async () => {
    const p = freshId('views');
    const gap = { after: 100, upTo: 110, writes: [view('a', 105, ['all'])] };
    expect(await views.write(p, gap)).toBe(0);
    expect(await views.read(p, 'a')).toBeNull();
    expect(await views.counts(p, ['all'])).toEqual([0]);
    expect(await views.checkpoint(p)).toBe(0);
  });

  test('a call beyond the limits throws RangeError', async () => {
    const p = freshId('views');
    const many = Array.from({ length: 501 }, (_, n) => view(`k${n}`, n + 1));
    await expect(views.write(p, { after: 0, upTo: 501, writes: many })).rejects.toThrow(RangeError);
    const twice = { after: 0, upTo: 2, writes: [view('a', 1), view('a', 2)] };
    await expect(views.write(p, twice)).rejects.toThrow(RangeError);
    const outside = { after: 5, upTo: 6, writes: [view('a', 7)] };
    await expect(views.write(p, outside)).rejects.toThrow(RangeError);
    for (const query of [
      { lists: [], offset: 0, limit: 1 },
      { lists: ['all'], offset: -1, limit: 1 },
      { lists: ['all'], offset: 0, limit: 0 },
      { lists: ['all'], offset: 0, limit: 1001 },
    ])
      await expect(views.page(p, query)).rejects.toThrow(RangeError);
  });

  test('waiting for a checkpoint ends at once, when it is reached, or after the time-out', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 5, writes: [] });
    expect(await views.waitForCheckpoint(p, 5, 1000)).toBe(true);
    expect(await views.waitForCheckpoint(p, 6, 50)).toBe(false);
    const waiting = [6, 7, 9].map((sequence) => views.waitForCheckpoint(p, sequence, 5000));
    const beyond = views.waitForCheckpoint(p, 10, 300);
    await views.write(p, { after: 5, upTo: 6, writes: [] });
    await views.write(p, { after: 6, upTo: 9, writes: [] });
    expect(await Promise.all(waiting)).toEqual([true, true, true]);
    expect(await beyond).toBe(false);
  });

  test('projectors that race over the same events give the result of one', async () => {
    const [raced, alone] = [freshId('views'), freshId('views')];
    const events = Array.from({ length: 600 }, (_, n) => ({
      sequence: n + 1,
      key: `k${(n * 7) % 40}`,
      isRemoval: n % 5 === 3,
    }));
    const run = (p: string, size: number) => foldInBatches(views, p, events, size);
    await Promise.all([run(raced, 7), run(raced, 11), run(raced, 3), run(alone, 600)]);
    const keys = Array.from({ length: 40 }, (_, n) => `k${n}`);
    expect(await views.readMany(raced, keys)).toEqual(await views.readMany(alone, keys));
    const all = { lists: ['all'], offset: 0, limit: 100 };
    expect(await views.page(raced, all)).toEqual(await views.page(alone, all));
    expect(await views.checkpoint(raced)).toBe(600);
  });
});

type Step = { sequence: number; key: string; isRemoval: boolean };

/**
 * A projector of its own: takes no notice of what rivals have done, but for the store's answers.
 */
async function foldInBatches(
  views: Views,
  projection: string,
  events: readonly Step[],
  size: number,
): Promise<void> {
  for (let from = 0; from < events.length; from += size) {
    const batch = events.slice(from, from + size);
    const writes = new Map(
      batch.map(({ key, sequence, isRemoval }) => [
        key,
        isRemoval ? removal(key, sequence) : view(key, sequence, ['all']),
      ]),
    );
    const upTo = from + batch.length;
    await views.write(projection, { after: from, upTo, writes: [...writes.values()] });
  }
}
