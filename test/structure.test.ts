import { describe, expect, it, test } from 'vitest';
import {
  featureOf,
  inEachProcess,
  isOurs,
  isWithin,
  knowFeatures,
  layerOf,
  layers,
  mayAdapt,
  mayImport,
  mustExist,
  roles,
  rooms,
} from './layers.ts';
import { isOwnJson, ownJson, mayUse } from './packages.ts';
import {
  circlesOf,
  floorsOf,
  importsByFile,
  importsByLayer,
  loadedWith,
  productFiles,
} from './support/sources/import-graph.ts';
import { codeWith } from '#test/support/sources/lines-with.ts';
import { sourceFiles, textFiles, type SourceFile } from '#test/support/sources/source-files.ts';

const files = sourceFiles();
const FOLDER_FILES_MAX = 22;
const FLOORS_MAX = 12;
const ROOMS_MAX = 12;
const ROOM_FLOORS_MAX = 8;
const WAYS_MAX = 45;

describe('the walk sees what it judges', () => {
  it('finds the files', () => {
    expect(files.length).toBeGreaterThan(100);
    expect(textFiles().length).toBeGreaterThan(files.length);
  });

  test.each(mustExist)('%s has files', (layer) => {
    expect(files.filter(({ path }) => layerOf(path) === layer).length).toBeGreaterThan(0);
  });

  it('reads their imports', () => {
    const imports = files.flatMap((file) => file.imports);
    expect(imports.length).toBeGreaterThan(2 * files.length);
    const handle = files.find(({ path }) => path === 'src/commands/handle-command.ts');
    expect(handle?.imports).toEqual(
      expect.arrayContaining([
        'src/kernel/async/retry.ts',
        'events/subjects.ts',
        'src/kernel/event-store/load-state.ts',
      ]),
    );
  });
});

describe('layers', () => {
  it('have a place for every file', () => {
    expect(files.map(({ path }) => path).filter((path) => layerOf(path) === null)).toEqual([]);
  });

  test.each(Object.keys(layers))('%s imports only what stands below it', (layer) => {
    const own = files.filter(({ path }) => layerOf(path) === layer);
    expect(breaches(own, (_, path) => !isOurs(path) || mayImport(layer, path))).toEqual([]);
  });

  it('are in rooms, of which none imports one above it', () => {
    const roomOf = (path: string) => rooms.findIndex((room) => isWithin(path, room));
    const product = productFiles(files);
    expect(product.filter(({ path }) => roomOf(path) === -1).map(({ path }) => path)).toEqual([]);
    const isBelow = ({ path }: SourceFile, imported: string) =>
      !isOurs(imported) || roomOf(imported) <= roomOf(path);
    expect(breaches(product, isBelow)).toEqual([]);
  });

  it('have features of which none imports another', () => {
    const features = files.filter(({ path }) => featureOf(path) !== null);
    expect(new Set(features.map(({ path }) => featureOf(path))).size).toBeGreaterThan(8);
    const isApart = ({ path }: SourceFile, imported: string) =>
      [null, featureOf(path)].includes(featureOf(imported));
    expect(breaches(features, isApart)).toEqual([]);
  });

  it('have features that go with their folder and their line in the list', () => {
    const list = files.find(({ path }) => path === 'src/features/all.ts');
    const listed = (list?.imports ?? []).map(featureOf).filter((one) => one !== null);
    expect(listed.length).toBeGreaterThan(12);
    const ofPeople = ['src/features/all.ts', 'src/apps', ...knowFeatures];
    const outside = productFiles(files).filter(
      ({ path }) => !ofPeople.some((place) => isWithin(path, place)),
    );
    const isOfOne = ({ path }: SourceFile, imported: string) => {
      const feature = featureOf(imported);
      return feature === null || !listed.includes(feature) || featureOf(path) === feature;
    };
    expect(breaches(outside, isOfOne)).toEqual([]);
  });

  it('leave an adapter to compose, to its technology and to tests', () => {
    expect(breaches(files, mayAdapt)).toEqual([]);
  });

  it('leave each package to the files that it is for', () => {
    expect(breaches(files, mayUse)).toEqual([]);
  });
});

describe('the structure', () => {
  const product = productFiles(files);

  it('has no circle of imports', () => {
    const circle = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['a']],
      ['d', ['a']],
    ]);
    expect(circlesOf(circle)).toEqual([['a', 'b', 'c']]);
    expect(circlesOf(importsByFile(product))).toEqual([]);
    expect(circlesOf(importsByLayer(product, layerOf))).toEqual([]);
  });

  it(`has at most ${FLOORS_MAX} floors: layers that stand on one another`, () => {
    const floors = floorsOf(importsByLayer(product, layerOf));
    expect(floors).toBeGreaterThan(4);
    expect(floors).toBeLessThanOrEqual(FLOORS_MAX);
  });

  it('has few rooms and few ways between them', () => {
    const roomOf = (path: string) => rooms.find((room) => isWithin(path, room)) ?? null;
    const ways = importsByLayer(product, roomOf);
    expect(ways.size).toBeLessThanOrEqual(ROOMS_MAX);
    expect(floorsOf(ways)).toBeLessThanOrEqual(ROOM_FLOORS_MAX);
    expect([...ways.values()].flat().length).toBeLessThanOrEqual(WAYS_MAX);
  });

  it('loads a role where that is to run, and with it no other role', () => {
    const rolesOf = (paths: readonly string[]) =>
      Object.keys(roles).filter((role) =>
        paths.some((path) => path.startsWith(`${role}/`) && !inEachProcess.includes(path)),
      );
    const service = loadedWith('src/main.ts', product);
    const program = loadedWith('src/start/run-service.ts', product);
    expect([rolesOf(service), rolesOf(program)]).toEqual([[], []]);
    expect(program).toEqual(expect.arrayContaining([...inEachProcess]));
    for (const [role, composed] of Object.entries(roles))
      expect([role, rolesOf(loadedWith(composed, product))]).toEqual([role, [role]]);
  });

  it(`has at most ${FOLDER_FILES_MAX} source files in a folder`, () => {
    const count = Map.groupBy(files, ({ path }) => path.slice(0, path.lastIndexOf('/')));
    const large = [...count].filter(([, members]) => members.length > FOLDER_FILES_MAX);
    expect(large.map(([folder, members]) => `${folder}: ${members.length}`)).toEqual([]);
  });
});

describe('what is pure', () => {
  const pure = files.filter(isPure);
  const clocks = /\bDate\.now\b|\bnew Date\(\)|\bset(?:Timeout|Interval|Immediate)\b/;
  const machine = /\bMath\.random\b|\b(?:process|performance|crypto|console)\.|\bfetch\(/;

  it('is the contract, the domain and the folds', () => {
    const paths = pure.map(({ path }) => path);
    for (const path of [
      'events/codec.ts',
      'src/kernel/domain/session/decide.ts',
      'src/kernel/domain/fleet/server.ts',
    ])
      expect(paths).toContain(path);
    expect(paths.filter((path) => path.startsWith('projections/')).length).toBeGreaterThan(2);
  });

  it('imports nothing of the machine', () => {
    expect(breaches(pure, (_, imported) => !imported.startsWith('node:'))).toEqual([]);
  });

  it('knows no clock, no chance and no environment', () => {
    expect(codeWith(pure, clocks)).toEqual([]);
    expect(codeWith(pure, machine)).toEqual([]);
  });
});

it('JSON of somebody else is parsed within bounds, by one function', () => {
  const parses = /\bJSON\.parse\(/;
  const judged = files.filter(({ path }) => !path.startsWith('test/'));
  const foreign = judged.filter(({ path }) => !isOwnJson(path));
  expect(codeWith(foreign, parses)).toEqual([]);
  // A place that parses nothing is no place in the list.
  const unused = ownJson.filter(
    (place) =>
      codeWith(
        judged.filter(({ path }) => path.startsWith(place)),
        parses,
      ).length === 0,
  );
  expect(unused).toEqual([]);
});

it('subjects are built in the contract and nowhere else', () => {
  const judged = files.filter(({ path }) => !/^(events|test)\//.test(path));
  expect(codeWith(judged, /['"`](evt|fleet|tmr|live)\./)).toEqual([]);
});

describe('one mechanism of each kind', () => {
  // The client is a package of its own, and what runs in pages has no back-off with a signal.
  const judged = files.filter(
    ({ path }) =>
      /^(src|projections)\//.test(path) && !/^src\/apps\/(client|dashboard)\//.test(path),
  );
  it.each([
    [
      'a map that drops its oldest entry',
      'src/kernel/async/bounded-map.ts',
      /\[oldest[^\]]*\] = .*keys\(\)|\.keys\(\)\.take\(/,
    ],
    [
      'a client of CDP',
      'src/browsers/link/cdp.ts',
      /stringify\(\{ id(?:: \w+)?, method\b|'Target\.attachToTarget', /,
    ],
    ['a presenter of servers', 'src/commands/operator/servers.ts', /limited_by: pool\?\.limitedBy/],
    // The name of the design is answered, and used nowhere else.
    [
      'a word for dead letters',
      'src/apps/cli/bss.ts',
      /\bpark(?:s|ed|ing)?\b|parked|Parked|PARKED/,
    ],
    [
      'a question to one server',
      'src/kernel/messaging/jetstream/jetstream-questions.ts',
      /\baskSubject\(/,
    ],
    [
      'places of all and of one owner',
      'src/kernel/async/',
      / >=? \w*[pP]er(?:Organization|Owner)\w*\)/,
    ],
    [
      'a pause that doubles',
      'src/kernel/async/',
      /[pP]auseMs = Math\.min\(2 \* |Math\.min\(.*\* 2 \*\*/,
    ],
  ])('%s: %s', (_, home, pattern) => {
    const found = codeWith(judged, pattern);
    expect(found.filter((line) => !line.startsWith(home))).toEqual([]);
    expect(found).not.toEqual([]);
  });
});

/** events, the domain, every file that declares a projection, and what says so of itself here. */
function isPure({ path, code }: SourceFile): boolean {
  const folders = ['events', 'src/kernel/domain'];
  const others = [
    'projections/projection.ts',
    'src/roles/provisioner/reconcile/plan.ts',
    'src/kernel/errors.ts',
  ];
  if (folders.includes(layerOf(path) ?? '') || others.includes(path)) return true;
  return path.startsWith('projections/') && /^export const \w+: Projection</m.test(code);
}

/** `<file>: <import>` for each import that is not allowed there. */
function breaches(
  from: readonly SourceFile[],
  isAllowed: (file: SourceFile, imported: string) => boolean,
): string[] {
  return from.flatMap((file) =>
    file.imports
      .filter((imported) => !isAllowed(file, imported))
      .map((imported) => `${file.path}: ${imported}`),
  );
}
