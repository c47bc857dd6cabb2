import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoreMaintenance } from '#projections/store/maintenance.ts';
import type { Views } from '#projections/store/views.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { eventually } from '#test/support/service/service.ts';
import { keysOf, removal, textOf, view, viewStores } from '#test/support/stores/view-stores.ts';

describe.each(viewStores)('maintenance of views in $adapter', ({ open }) => {
  let views: Views & StoreMaintenance;
  beforeAll(async () => {
    views = await open();
  });
  afterAll(() => views[Symbol.asyncDispose]());

  test('a dropped store is empty and can be written again', async () => {
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

  test('a store is bound to the first event store id until it is dropped', async () => {
    const p = freshId('views');
    expect(await views.isBuiltFrom(p, 'one')).toBe(true);
    expect(await views.isBuiltFrom(p, 'one')).toBe(true);
    expect(await views.isBuiltFrom(p, 'another')).toBe(false);
    await views.drop(p);
    expect(await views.isBuiltFrom(p, 'another')).toBe(true);
  });

  test('a store replaces another with all of its views and lists', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 3, ['all']), view('b', 7)] });
    const better = [view('a', 3, ['all', 'new']), view('c', 9, ['new'])];
    await views.isBuiltFrom(next, 'log');
    await views.write(next, { after: 0, upTo: 11, writes: better });
    expect(await views.replace(p, next, 0)).toBe(true);
    expect(await views.checkpoint(p)).toBe(11);
    expect(await views.readMany(p, ['a', 'b', 'c'])).toEqual([
      textOf('a', 3),
      null,
      textOf('c', 9),
    ]);
    expect(await keysOf(views, p, ['new'])).toEqual(['c', 'a']);
    expect(await views.counts(p, ['all', 'new'])).toEqual([1, 2]);
    expect(await views.rank(p, 'new', 'c')).toBe(1);
    expect(await views.isBuiltFrom(p, 'another')).toBe(false);
    expect(await views.checkpoint(next)).toBe(0);
    expect(await views.counts(next, ['all', 'new'])).toEqual([0, 0]);
  });

  test('a store can be replaced repeatedly; nothing of the old ones comes back', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    for (let round = 1; round <= 3; round += 1) {
      const writes = [view(`k${round}`, round, ['all', `round/${round}`])];
      await views.write(next, { after: 0, upTo: round, writes });
      expect(await views.replace(p, next, 0)).toBe(true);
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

  test('a store that is behind does not replace another', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    expect(await views.replace(p, next, 0)).toBe(true);
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 3, ['all'])] });
    expect(await views.replace(p, next, 0)).toBe(false);
    await views.write(next, { after: 0, upTo: 8, writes: [view('a', 3)] });
    expect(await views.replace(p, next, 0)).toBe(false);
    expect(await views.checkpoint(p)).toBe(9);
    expect(await keysOf(views, p, ['all'])).toEqual(['a']);
    await views.write(next, { after: 8, upTo: 9, writes: [] });
    expect(await views.replace(p, next, 0)).toBe(true);
  });

  test('a store that has lost what its writer wrote does not replace another', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(next, { after: 0, upTo: 8, writes: [view('a', 3)] });
    expect(await views.replace(p, next, 9)).toBe(false);
    expect(await views.checkpoint(p)).toBe(0);
    expect(await views.replace(p, next, 8)).toBe(true);
    expect(await views.checkpoint(p)).toBe(8);
  });

  test('a call that waits for a checkpoint resolves when the store is replaced', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(next, { after: 0, upTo: 9, writes: [] });
    const reaching = views.waitForCheckpoint(p, 9, 5000);
    await views.replace(p, next, 0);
    expect(await reaching).toBe(true);
  });

  test('a projector whose store was replaced continues at the new checkpoint', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(p, { after: 0, upTo: 5, writes: [view('a', 5)] });
    await views.write(next, { after: 0, upTo: 7, writes: [view('a', 7)] });
    await views.replace(p, next, 0);
    expect(await views.write(p, { after: 5, upTo: 6, writes: [view('a', 6)] })).toBe(7);
    expect(await views.write(p, { after: 5, upTo: 8, writes: [view('a', 8)] })).toBe(8);
    expect(await views.write(next, { after: 7, upTo: 8, writes: [view('a', 8)] })).toBe(0);
  });

  test('a store is in use until its renewal expires', async () => {
    const [kept, left] = [freshId('views'), freshId('views')];
    await views.write(kept, { after: 0, upTo: 4, writes: [view('a', 3), view('b', 4)] });
    await views.renew(kept, 60_000);
    await views.renew(kept, 1);
    await views.renew(left, 1);
    const facts = async (p: string) =>
      (await views.stores()).find(({ projection }) => projection === p) ?? null;
    expect(await facts(kept)).toEqual({ projection: kept, checkpoint: 4, views: 2, isInUse: true });
    await eventually(async () => (await facts(left))?.isInUse === false, 'its time is over');
    await views.drop(left);
    expect(await facts(left)).toBeNull();
  });

  test('one holder at a time has the lock of a store', async () => {
    const p = freshId('views');
    expect(await views.acquire(p, 'one', 60_000)).toBe(true);
    expect(await views.acquire(p, 'one', 60_000)).toBe(true);
    expect(await views.acquire(p, 'two', 60_000)).toBe(false);
    expect(await views.acquire(p, 'one', 0)).toBe(true);
    expect(await views.acquire(p, 'two', 1)).toBe(true);
    await eventually(() => views.acquire(p, 'one', 60_000), 'the second one’s time is over');
  });

  test('views are overwritten only at the checkpoint they were folded at', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 9, writes: [view('a', 5, ['old']), view('b', 9)] });
    const anew = { ...view('a', 3, ['new']), view: '"anew"' };
    expect(await views.overwrite(p, 8, [anew])).toBe(false);
    expect(await views.read(p, 'a')).toBe(textOf('a', 5));
    expect(await views.overwrite(p, 9, [anew, removal('b', 9)])).toBe(true);
    expect(await views.readMany(p, ['a', 'b'])).toEqual(['"anew"', null]);
    expect(await views.counts(p, ['old', 'new'])).toEqual([0, 1]);
    expect(await views.checkpoint(p)).toBe(9);
  });

  test('views up to a sequence are removed with their list entries, and the others stay', async () => {
    const p = freshId('views');
    const count = 2_500;
    for (let from = 0; from < count; from += 500) {
      const writes = Array.from({ length: 500 }, (_, n) => {
        const sequence = from + n + 1;
        const lists = sequence % 10 === 0 ? [] : ['all', `of/${sequence % 7}`, 'label/ä=\ud800'];
        return view(`k${sequence}`, sequence, lists, count - sequence);
      });
      await views.write(p, { after: from, upTo: from + 500, writes });
    }
    expect(await views.removeUpTo(p, 0)).toBe(0);
    expect(await views.removeUpTo(p, 2_490)).toBe(2_490);
    expect(await views.removeUpTo(p, 2_490)).toBe(0);
    expect(await views.checkpoint(p)).toBe(count);
    expect(await views.readMany(p, ['k1', 'k2490', 'k2491'])).toEqual([
      null,
      null,
      textOf('k2491', 2_491),
    ]);
    const left = Array.from({ length: 9 }, (_, n) => `k${2_491 + n}`);
    expect(await keysOf(views, p, ['all'])).toEqual(left);
    expect(await views.counts(p, ['all', 'of/0', 'of/1'])).toEqual([9, 2, 1]);
    expect((await views.inspect(p, ['k1', 'k10'])).views).toEqual([null, null]);
    for await (const strays of views.orphans(p)) expect(strays).toEqual([]);
    const again = [view('k1', count + 1, ['all'])];
    expect(await views.write(p, { after: count, upTo: count + 1, writes: again })).toBe(count + 1);
    expect(await views.read(p, 'k1')).toBe(textOf('k1', count + 1));
    expect(await views.removeUpTo(freshId('none'), 9)).toBe(0);
  });

  test('a removal beside a projector leaves what it has written since', async () => {
    const p = freshId('views');
    const old = Array.from({ length: 400 }, (_, n) => view(`k${n}`, n + 1, ['all', 'old']));
    await views.write(p, { after: 0, upTo: 400, writes: old });
    const removing = views.removeUpTo(p, 400);
    const writes = Array.from({ length: 100 }, (_, n) => view(`k${4 * n}`, 401 + n, ['all']));
    for (const [index, write] of writes.entries())
      await views.write(p, { after: 400 + index, upTo: 401 + index, writes: [write] });
    expect(await removing).toBeGreaterThanOrEqual(300);
    expect(await views.removeUpTo(p, 400)).toBe(0);
    const keys = writes.map(({ key }) => key);
    expect(await views.readMany(p, keys)).toEqual(writes.map((write) => write.view));
    expect(await views.counts(p, ['all', 'old'])).toEqual([100, 0]);
    for await (const strays of views.orphans(p)) expect(strays).toEqual([]);
  });

  test('the lists of a store that has replaced another are found at a removal', async () => {
    const [p, next] = [freshId('views'), freshId('next')];
    await views.write(p, { after: 0, upTo: 3, writes: [view('a', 3, ['all'])] });
    await views.drop(next);
    const writes = [view('a', 3, ['all']), view('b', 4, ['all'])];
    await views.write(next, { after: 0, upTo: 4, writes });
    await views.replace(p, next, 0);
    expect(await views.removeUpTo(p, 3)).toBe(1);
    expect(await keysOf(views, p, ['all'])).toEqual(['b']);
    expect(await views.counts(p, ['all'])).toEqual([1]);
  });

  test('all keys are listed, and what is stored under them', async () => {
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
    expect(await views.inspect(p, ['k7', 'none'])).toEqual({
      checkpoint: 1200,
      views: [
        { view: textOf('k7', 8), sequence: 8, lists: ['all'], order: 0.5, missingIn: [] },
        null,
      ],
    });
    expect((await views.inspect(p, [])).views).toEqual([]);
    const some = await views.sample(p, 10);
    expect(new Set(some).size).toBe(10);
    expect(some.every((key) => keys.has(key))).toBe(true);
    expect(await views.sample(freshId('none'), 10)).toEqual([]);
    for await (const strays of views.orphans(p)) expect(strays).toEqual([]);
  });
});
