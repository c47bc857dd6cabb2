import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Upkeep } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { keysOf, removal, textOf, view, viewStores } from '#test/support/stores/view-stores.ts';

describe.each(viewStores)('the upkeep of views in $adapter', ({ open }) => {
  let views: Views & Upkeep;
  beforeAll(async () => {
    views = await open();
  });
  afterAll(() => views[Symbol.asyncDispose]());

  test('what is dropped is gone, and may begin anew', async () => {
    const p = freshId('views');
    const lists = ['all', 'label/a=b'];
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 3, lists), view('b', 7, lists)] });
    await views.drop(p);
    expect(await views.checkpoint(p)).toBe(0);
    expect(await views.readMany(p, ['a', 'b'])).toEqual([null, null]);
    expect(await views.counts(p, lists)).toEqual([0, 0]);
    await views.drop(p);
    await views.write(p, { after: 0, upTo: 2, writes: [view('c', 2, ['all'])] });
    expect(await keysOf(views, p, ['all'])).toEqual(['c']);
  });

  test('a store is of the log that it was first told, until it is dropped', async () => {
    const p = freshId('views');
    expect(await views.isOf(p, 'one')).toBe(true);
    expect(await views.isOf(p, 'one')).toBe(true);
    expect(await views.isOf(p, 'another')).toBe(false);
    await views.drop(p);
    expect(await views.isOf(p, 'another')).toBe(true);
  });

  test('another store takes a store’s place whole', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 3, ['all']), view('b', 7)] });
    const better = [view('a', 3, ['all', 'new']), view('c', 9, ['new'])];
    await views.isOf(next, 'log');
    await views.write(next, { after: 0, upTo: 11, writes: better });
    expect(await views.replace(p, next)).toBe(true);
    expect(await views.checkpoint(p)).toBe(11);
    expect(await views.readMany(p, ['a', 'b', 'c'])).toEqual([
      textOf('a', 3),
      null,
      textOf('c', 9),
    ]);
    expect(await keysOf(views, p, ['new'])).toEqual(['c', 'a']);
    expect(await views.counts(p, ['all', 'new'])).toEqual([1, 2]);
    expect(await views.rank(p, 'new', 'c')).toBe(1);
    expect(await views.isOf(p, 'another')).toBe(false);
    expect(await views.checkpoint(next)).toBe(0);
    expect(await views.counts(next, ['all', 'new'])).toEqual([0, 0]);
  });

  test('a store takes another’s place again and again, and nothing of before comes back', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    for (let round = 1; round <= 3; round += 1) {
      const writes = [view(`k${round}`, round, ['all', `round/${round}`])];
      await views.write(next, { after: 0, upTo: round, writes });
      expect(await views.replace(p, next)).toBe(true);
      await views.write(p, {
        after: round,
        upTo: round + 1,
        writes: [view('a', round + 1, ['all'])],
      });
      expect(await keysOf(views, p, ['all'])).toEqual(['a', `k${round}`]);
      expect(await views.counts(p, [`round/${round - 1}`, `round/${round}`])).toEqual([0, 1]);
      await views.write(next, { after: 0, upTo: round + 1, writes: [] });
      expect(await views.counts(next, ['all'])).toEqual([0]);
      await views.drop(next);
    }
  });

  test('a store that is behind takes nobody’s place', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    expect(await views.replace(p, next)).toBe(true);
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 3, ['all'])] });
    expect(await views.replace(p, next)).toBe(false);
    await views.write(next, { after: 0, upTo: 8, writes: [view('a', 3)] });
    expect(await views.replace(p, next)).toBe(false);
    expect(await views.checkpoint(p)).toBe(9);
    expect(await keysOf(views, p, ['all'])).toEqual(['a']);
    await views.write(next, { after: 8, upTo: 9, writes: [] });
    expect(await views.replace(p, next)).toBe(true);
  });

  test('who waits hears of a checkpoint that comes with another store', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(next, { after: 0, upTo: 9, writes: [] });
    const reaching = views.reached(p, 9, 5000);
    await views.replace(p, next);
    expect(await reaching).toBe(true);
  });

  test('a projector whose store was replaced goes on where the new one stands', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(p, { after: 0, upTo: 5, writes: [view('a', 5)] });
    await views.write(next, { after: 0, upTo: 7, writes: [view('a', 7)] });
    await views.replace(p, next);
    expect(await views.write(p, { after: 5, upTo: 6, writes: [view('a', 6)] })).toBe(7);
    expect(await views.write(p, { after: 5, upTo: 8, writes: [view('a', 8)] })).toBe(8);
    expect(await views.write(next, { after: 7, upTo: 8, writes: [view('a', 8)] })).toBe(0);
  });

  test('kept stores are told apart from those that nobody keeps any more', async () => {
    const [kept, left] = [freshId('views'), freshId('views')];
    await views.write(kept, { after: 0, upTo: 4, writes: [view('a', 3), view('b', 4)] });
    await views.keep(kept, 60_000);
    await views.keep(kept, 1);
    await views.keep(left, 1);
    const facts = async (p: string) =>
      (await views.stores()).find(({ projection }) => projection === p) ?? null;
    expect(await facts(kept)).toEqual({ projection: kept, checkpoint: 4, views: 2, isKept: true });
    await eventually(async () => (await facts(left))?.isKept === false, 'its time is over');
    await views.drop(left);
    expect(await facts(left)).toBeNull();
  });

  test('one holder at a time has a store', async () => {
    const p = freshId('views');
    expect(await views.claim(p, 'one', 60_000)).toBe(true);
    expect(await views.claim(p, 'one', 60_000)).toBe(true);
    expect(await views.claim(p, 'two', 60_000)).toBe(false);
    expect(await views.claim(p, 'one', 0)).toBe(true);
    expect(await views.claim(p, 'two', 1)).toBe(true);
    await eventually(() => views.claim(p, 'one', 60_000), 'the second one’s time is over');
  });

  test('views are mended at the checkpoint they were folded at, and at no other', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 5, ['old']), view('b', 9)] });
    const anew = { ...view('a', 3, ['new']), view: '"anew"' };
    expect(await views.mend(p, 8, [anew])).toBe(false);
    expect(await views.read(p, 'a')).toBe(textOf('a', 5));
    expect(await views.mend(p, 9, [anew, removal('b', 9)])).toBe(true);
    expect(await views.readMany(p, ['a', 'b'])).toEqual(['"anew"', null]);
    expect(await views.counts(p, ['old', 'new'])).toEqual([0, 1]);
    expect(await views.checkpoint(p)).toBe(9);
  });

  test('all keys are told, and what is held under them', async () => {
    const p = freshId('views');
    for (let from = 0; from < 1200; from += 400) {
      const writes = Array.from({ length: 400 }, (_, n) =>
        view(`k${from + n}`, from + n + 1, ['all'], 0.5),
      );
      await views.write(p, { after: from, upTo: from + 400, writes });
    }
    const keys = new Set<string>();
    for await (const some of views.keys(p)) for (const key of some) keys.add(key);
    expect(keys.size).toBe(1200);
    expect(await views.held(p, ['k7', 'none'])).toEqual({
      checkpoint: 1200,
      views: [
        { view: textOf('k7', 8), sequence: 8, lists: ['all'], order: 0.5, missingIn: [] },
        null,
      ],
    });
    expect((await views.held(p, [])).views).toEqual([]);
    const some = await views.sample(p, 10);
    expect(new Set(some).size).toBe(10);
    expect(some.every((key) => keys.has(key))).toBe(true);
    expect(await views.sample(freshId('none'), 10)).toEqual([]);
    for await (const strays of views.strays(p)) expect(strays).toEqual([]);
  });
});
