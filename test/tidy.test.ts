import {
  circlesOf,
  floorsOf,
  importsByFile,
  importsByLayer,
  loadedWith,
  productFiles,
} from './support/import-graph.ts';
import { describe, expect, it, test } from 'vitest';
import { ALLOWED_SENTENCES, BANNED_PHRASES, bannedPhrase, withoutAllowed } from './words.ts';
import { tierOf } from './tiers.ts';
import {
  featureOf,
  inEachProcess,
  isOurs,
  isWithin,
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
  codeLines,
  readText,
  sourceFiles,
  textFiles,
  type SourceFile,
} from '#test/support/source-files.ts';

const files = sourceFiles();
const LINES_MAX = 350;
const COLUMNS_MAX = 100;
const FOLDER_FILES_MAX = 22;
const FLOORS_MAX = 12;

/** Milliseconds below 30 s, as a number in code. */
const SHORT = String.raw`\b(?:\d{1,4}|[12]?\d_\d{3})\b`;
/** Lines of a test that pass or fail by how fast the machine is. */
const TIMED = [
  String.raw`\bawait (?:sleep|pause|delay)\(${SHORT}[,)]`,
  String.raw`\bsetTimeout\((?:resolve|done), ${SHORT}`,
  String.raw`\beventually\(.*, ${SHORT}\)`,
  String.raw`\b(?:poll|waitFor|waitUntil)\(.*\btimeout: ${SHORT}`,
  String.raw`^const \w+ = \{ timeout: ${SHORT}`,
  String.raw`\bDate\.now\(\) % `,
].map((pattern) => new RegExp(pattern));
const isTimed = (line: string) => TIMED.some((pattern) => pattern.test(line));
const timedLines = [
  'await sleep(50);',
  'await pause(2_000);',
  'await new Promise((resolve) => void setTimeout(resolve, 200));',
  "await eventually(() => isDone, 'it is done', 15_000);",
  'await expect.poll(read, { timeout: 10_000 }).toBe(1);',
  'await vi.waitUntil(isUp, { timeout: 500, interval: 10 });',
  'const SOON = { timeout: 20_000 };',
  'const leftMs = MINUTE_MS - (Date.now() % MINUTE_MS);',
];
const untimedLines = [
  'await sleep(slowMs);',
  'await sleep(10 * silentMs);',
  "await eventually(() => count === 2, 'both are there');",
  "await eventually(() => count === 2, 'both are there', 60_000);",
  "const late = new Promise((resolve) => setTimeout(resolve, 30_000, 'too late').unref());",
  'await expect.poll(read, { timeout: 120_000 }).toBe(1);',
  'tls { cert_file: "cert.pem", timeout: 5 }',
];

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

describe('files', () => {
  it(`have at most ${LINES_MAX} lines, blank ones and comments aside`, () => {
    const long = files.filter((file) => codeLines(file) > LINES_MAX);
    expect(long.map((file) => `${file.path}: ${codeLines(file)}`)).toEqual([]);
  });

  it(`have at most ${COLUMNS_MAX} columns`, () => {
    // The formatter puts a test's title on the line that begins it, and a name that is imported
    // alone beside its file, however long.
    const tooWide = new RegExp(`^(?!\\s*(?:it|test|describe)\\(|import ).{${COLUMNS_MAX + 1},}`);
    expect(textWith(files, tooWide)).toEqual([]);
  });

  it('are named in kebab-case, for what they are about', () => {
    const banned = /^(utils?|helpers?|common|services|managers?|types?|index|misc|shared)\./;
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*\.tsx?$/;
    const names = files.filter(({ name }) => !kebab.test(name) || banned.test(name));
    expect(names.map(({ path }) => path)).toEqual([]);
  });

  it('have named exports only', () => {
    // vite and vitest take their configuration and its reporter by their default export.
    const judged = files.filter(
      ({ path }) => !/^test\/(?:vitest\.|support\/(?:summary|soak-record))|vite\.config/.test(path),
    );
    expect(codeWith(judged, /^export default\b|\bas default\b/)).toEqual([]);
  });

  it('hold no note to oneself', () => {
    expect(textWith(files, /\b(?:TOD[O]|FIXM[E]|XX[X])\b/)).toEqual([]);
  });

  it('skip no test and run none alone', () => {
    expect(codeWith(files, /\b(?:it|test|describe)\.(?:skip|only|todo)\b/)).toEqual([]);
  });

  it('send no signal where a pid is missing: 0 means this process group', () => {
    expect(codeWith(files, /\bkill\([^,]*\?\? 0\b|\bpid = 0\b.*child/)).toEqual([]);
  });

  it('give no test a second try: test/gate.ts alone repeats', () => {
    // As an option of a test or of vitest, by their configuration or their command line.
    const secondTry = /\bretry:\s*(?:\d+\s*(?:[,}]|$)|\{|Number)|--retry\b/;
    expect(['{ retry: 2 }', 'vitest --retry=1'].filter((text) => !secondTry.test(text))).toEqual(
      [],
    );
    const judged = textFiles().filter(
      ({ path }) =>
        /^(?:test\/.*\.ts|package\.json|\.ci\/run)$/.test(path) && path !== 'test/tidy.test.ts',
    );
    expect(judged.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['test/vitest.config.ts', 'package.json', '.ci/run']),
    );
    expect(textWith(judged, secondTry)).toEqual([]);
  });

  it('of npm test wait for facts: no sleep, no bound below 30 s, no minute of the clock', () => {
    expect(timedLines.filter((line) => !isTimed(line))).toEqual([]);
    expect(untimedLines.filter(isTimed)).toEqual([]);
    const judged = files.filter(
      // In virtual time a sleep takes no time, and a bound is exact.
      ({ path, code }) =>
        /^test\/.*\.test\.ts$/.test(path) &&
        tierOf(path) === 'test' &&
        path !== 'test/tidy.test.ts' &&
        !/\b(?:useVirtualTime|createVirtualTime)\(/.test(code),
    );
    expect(judged.length).toBeGreaterThan(100);
    expect(TIMED.flatMap((pattern) => codeWith(judged, pattern))).toEqual([]);
  });

  it('name no path of a developer’s machine and no registry’s host', () => {
    // Written so that they do not find themselves.
    const homes = /[/](?:wor[k]|far[m]|User[s]|roo[t])[/]|C:[\\]User[s]/;
    const hosts = /registry[.]npmj[s]|deb[.]debia[n]/;
    expect(textWith(textFiles(), homes)).toEqual([]);
    expect(textWith(textFiles(), hosts)).toEqual([]);
  });
});

it('functions have at most 70 lines: the linter sees to it', () => {
  const { rules } = JSON.parse(readText('.oxlintrc.json')) as { rules: Record<string, unknown> };
  expect(rules['max-lines-per-function']).toEqual(['error', expect.objectContaining({ max: 70 })]);
});

it('sentences hold no banned phrase, in code or documents', () => {
  const judged = textFiles().filter(
    ({ path }) => /\.(?:tsx?|mjs|md)$/.test(path) && path !== 'test/words.ts',
  );
  expect(judged.map(({ path }) => path)).toContain('test/tidy.test.ts');
  expect(BANNED_PHRASES.every((phrase) => bannedPhrase.test(`So ${phrase}.`))).toBe(true);
  const left = judged.map(({ path, text }) => ({ path, text: withoutAllowed(text) }));
  expect(textWith(left, bannedPhrase)).toEqual([]);
  const isUsed = (sentence: string) => judged.some(({ text }) => text.includes(sentence));
  expect(ALLOWED_SENTENCES.filter((sentence) => !isUsed(sentence))).toEqual([]);
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

function codeWith(from: readonly SourceFile[], pattern: RegExp): string[] {
  return textWith(
    from.map(({ path, code }) => ({ path, text: code })),
    pattern,
  );
}

/** `<file>:<line> <text>` for each line in which the pattern is found. */
function textWith(from: readonly { path: string; text: string }[], pattern: RegExp): string[] {
  return from.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [],
      ),
  );
}
