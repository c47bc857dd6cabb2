import { describe, expect, it } from 'vitest';
import { ALLOWED_SENTENCES, BANNED_PHRASES, bannedPhrase, withoutAllowed } from './words.ts';
import { tierOf } from './tiers.ts';
import { codeWith, textWith } from '#test/support/sources/lines-with.ts';
import { codeLines, readText, sourceFiles, textFiles } from '#test/support/sources/source-files.ts';

const files = sourceFiles();
const LINES_MAX = 350;
const COLUMNS_MAX = 100;

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
