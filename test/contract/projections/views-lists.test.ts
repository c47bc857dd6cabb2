import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Views } from '#projections/store/views.ts';
import { freshId } from '#test/support/events.fixture.ts';
import { keysOf, removal, textOf, view, viewStores } from '#test/support/stores/view-stores.ts';

describe.each(viewStores)('the lists of views in $adapter', ({ open }) => {
  let views: Views;
  beforeAll(async () => {
    views = await open();
  });
  afterAll(() => views[Symbol.asyncDispose]());

  test('a written view leaves its old lists and enters its new ones', async () => {
    const p = freshId('views');
    const before = view('a', 1, ['all', 'open', 'status/creating']);
    await views.write(p, { after: 0, upTo: 1, writes: [before] });
    const after = view('a', 2, ['all', 'status/stopped']);
    await views.write(p, { after: 1, upTo: 2, writes: [after] });
    const lists = ['all', 'open', 'status/creating', 'status/stopped'];
    expect(await views.counts(p, lists)).toEqual([1, 0, 0, 1]);
    await views.write(p, { after: 2, upTo: 3, writes: [view('a', 3)] });
    expect(await views.counts(p, lists)).toEqual([0, 0, 0, 0]);
    expect(await views.read(p, 'a')).toBe(textOf('a', 3));
  });

  test('a removed view leaves all lists and can be written again', async () => {
    const p = freshId('views');
    await views.write(p, { after: 0, upTo: 1, writes: [view('a', 1, ['all', 'open'])] });
    await views.write(p, { after: 1, upTo: 2, writes: [removal('a', 2), removal('none', 2)] });
    expect(await views.read(p, 'a')).toBeNull();
    expect(await views.counts(p, ['all', 'open'])).toEqual([0, 0]);
    await views.write(p, { after: 2, upTo: 3, writes: [view('a', 3, ['all'])] });
    expect(await keysOf(views, p, ['all'])).toEqual(['a']);
  });

  test('a page has the highest order first and the stored texts unchanged', async () => {
    const p = freshId('views');
    const orders = { a: 1_767_225_600_000, b: 1_767_225_600_002, c: 1_767_225_600_001 };
    const writes = Object.entries(orders).map(([key, order]) => view(key, 1, ['all'], order));
    await views.write(p, { after: 0, upTo: 1, writes });
    const page = await views.page(p, { lists: ['all'], offset: 0, limit: 2 });
    const items = `${textOf('b', 1)},${textOf('c', 1)}`;
    expect(page).toEqual({ items, total: 3, checkpoint: 1 });
    expect(await keysOf(views, p, ['all'], 2)).toEqual(['a']);
    expect(await keysOf(views, p, ['all'], 3)).toEqual([]);
    expect(await views.rank(p, 'all', 'a')).toBe(0);
    expect(await views.rank(p, 'all', 'b')).toBe(2);
    expect(await views.rank(p, 'all', 'none')).toBeNull();
  });

  test('pages that are read at the same time are each their own', async () => {
    const p = freshId('views');
    const names = Array.from({ length: 50 }, (_, n) => `k${String(n).padStart(2, '0')}`);
    const writes = names.map((key, n) => view(key, n + 1, ['all', `of/${key}`]));
    await views.write(p, { after: 0, upTo: 50, writes });
    const asked = names.map((_, offset) => keysOf(views, p, ['all'], offset, 2));
    const alone = names.map((key) => keysOf(views, p, [`of/${key}`]));
    const many = [keysOf(views, p, ['all'], 0, 1000), keysOf(views, p, ['none'])];
    const newest = names.toReversed();
    expect(await Promise.all(asked)).toEqual(names.map((_, at) => newest.slice(at, at + 2)));
    expect(await Promise.all(alone)).toEqual(names.map((key) => [key]));
    expect(await Promise.all(many)).toEqual([newest, []]);
  });

  test('a view whose order changes moves in its lists', async () => {
    const p = freshId('views');
    const writes = [view('a', 1, ['all'], 1), view('b', 2, ['all'], 2)];
    await views.write(p, { after: 0, upTo: 2, writes });
    await views.write(p, { after: 2, upTo: 3, writes: [view('a', 3, ['all'], 3)] });
    expect(await keysOf(views, p, ['all'])).toEqual(['a', 'b']);
  });

  test('views of equal order are sorted by key: pages neither repeat nor miss one', async () => {
    const p = freshId('views');
    const writes = ['c', 'a', 'd', 'b'].map((key) => view(key, 1, ['all'], 5));
    await views.write(p, { after: 0, upTo: 1, writes });
    const pages = [0, 1, 2, 3].map((offset) => keysOf(views, p, ['all'], offset, 1));
    expect((await Promise.all(pages)).flat()).toEqual(['d', 'c', 'b', 'a']);
  });

  test('a page of several lists is their intersection', async () => {
    const p = freshId('views');
    const writes = Array.from({ length: 30 }, (_, n) => {
      const lists = ['all', n % 2 === 0 ? 'even' : 'odd', ...(n % 3 === 0 ? ['third'] : [])];
      return view(`k${String(n).padStart(2, '0')}`, n + 1, lists);
    });
    await views.write(p, { after: 0, upTo: 30, writes });
    const lists = ['all', 'even', 'third'];
    expect(await keysOf(views, p, lists)).toEqual(['k24', 'k18', 'k12', 'k06', 'k00']);
    expect(await keysOf(views, p, ['third', 'even'], 1, 2)).toEqual(['k18', 'k12']);
    expect(await views.page(p, { lists, offset: 9, limit: 5 })).toMatchObject({
      items: '',
      total: 5,
    });
    expect(await keysOf(views, p, ['even', 'odd'])).toEqual([]);
    expect(await keysOf(views, p, ['even', 'none'])).toEqual([]);
    expect(await keysOf(views, p, ['third', 'third'], 0, 1)).toEqual(['k27']);
  });

  test('an intersection is paged to its end over several scan steps', async () => {
    const p = freshId('views');
    for (let from = 0; from < 1500; from += 500) {
      const writes = Array.from({ length: 500 }, (_, n) =>
        view(`k${from + n}`, from + n + 1, ['all', (from + n) % 7 === 0 ? 'seventh' : 'rest']),
      );
      await views.write(p, { after: from, upTo: from + 500, writes });
    }
    const page = await views.page(p, { lists: ['rest', 'all'], offset: 1280, limit: 20 });
    expect(page).toMatchObject({ total: 1285, checkpoint: 1500 });
    expect(await keysOf(views, p, ['rest', 'all'], 1280)).toEqual(['k5', 'k4', 'k3', 'k2', 'k1']);
  });

  test('names and texts of any characters are stored unchanged', async () => {
    const p = freshId('views');
    const list = 'org/label/ключ="\\\n\u0000%3D';
    const text = JSON.stringify({ name: '“🦦”\u2028' });
    const write = { key: 'org/a', sequence: 1, view: text, lists: [list], order: 1 };
    await views.write(p, { after: 0, upTo: 1, writes: [write] });
    expect(await views.page(p, { lists: [list], offset: 0, limit: 1 })).toMatchObject({
      items: text,
      total: 1,
    });
    const broken = { ...write, sequence: 2, lists: ['half \ud83d'] };
    expect(await views.write(p, { after: 1, upTo: 2, writes: [broken] })).toBe(2);
    expect(await views.counts(p, [list])).toEqual([0]);
  });
});
