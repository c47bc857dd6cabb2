import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { aggregates } from '#events/events.ts';
import { readText, textFiles } from '#test/support/sources/source-files.ts';

const TOP_README_LINES_MAX = 130;
const README_LINES_MAX = 150;
const COLUMNS_MAX = 120;
/** What a newcomer can read in three hours; `wc -w` of all documents. */
const WORDS_MAX = 35_000;

/**
 * A file named in a sentence: `src/kernel/ids.ts` from the top of the project, or a source file by
 * the end of its path, such as `pool/serve.ts` in src/roles/provisioner/README.md.
 */
const NAMED_FILE = /`((?:src|events|projections|test|deploy)\/[\w./-]+|[\w/-][\w./-]*\.m?ts)`/g;

const paths = textFiles().map(({ path }) => path);
const documents = textFiles().filter(({ path }) => path.endsWith('.md'));

describe('documents', () => {
  it('are found', () => {
    expect(documents.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['README.md', 'events/README.md']),
    );
  });

  it(`READMEs have at most ${README_LINES_MAX} lines, that of the top ${TOP_README_LINES_MAX}`, () => {
    const long = documents
      .filter(({ path }) => path.endsWith('README.md'))
      .map(({ path, text }) => ({ path, lines: text.trimEnd().split('\n').length }))
      .filter(
        ({ path, lines }) =>
          lines > (path === 'README.md' ? TOP_README_LINES_MAX : README_LINES_MAX),
      );
    expect(long).toEqual([]);
  });

  it(`have at most ${WORDS_MAX} words in all`, () => {
    const words = documents.map(({ text }) => text.split(/\s+/).filter(Boolean).length);
    expect(words.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(WORDS_MAX);
  });

  it(`have at most ${COLUMNS_MAX} columns, tables and code aside`, () => {
    const wide = documents.flatMap(({ path, text }) =>
      proseLines(text)
        .filter(({ line }) => line.length > COLUMNS_MAX)
        .map(({ number }) => `${path}:${number}`),
    );
    expect(wide).toEqual([]);
  });

  it('have no link to a file or a heading that does not exist', () => {
    const links = documents.flatMap(({ path, text }) => linksOf(path, text));
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !leadsSomewhere(link)).map(({ shown }) => shown)).toEqual([]);
  });

  it('name no file of the project that does not exist', () => {
    const named = documents.flatMap(({ path, text }) =>
      [...text.matchAll(NAMED_FILE)].map(([, file = '']) => ({ path, file })),
    );
    expect(named.length).toBeGreaterThan(50);
    const missing = named.filter(({ path, file }) => !isFileFrom(path, file));
    expect(missing.map(({ path, file }) => `${path}: ${file}`)).toEqual([]);
  });
});

describe('events/README.md', () => {
  const types = Object.values(aggregates).flatMap(({ events }) => Object.keys(events));
  test.each(types)('names the emitter and the consumers of %s', (type) => {
    const row = readText('events/README.md')
      .split('\n')
      .find((line) => line.startsWith(`| \`${type}\` |`));
    const cells = row?.split('|').slice(2, 4) ?? [];
    expect(cells.map((cell) => cell.trim().length > 0)).toEqual([true, true]);
  });
});

type NumberedLine = { line: string; number: number };

/** The lines of a document that are neither rows of a table nor within a block of code. */
function proseLines(text: string): NumberedLine[] {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) isCode = !isCode;
    const isProse = !isFence && !isCode && !line.startsWith('|');
    return isProse ? [{ line, number: index + 1 }] : [];
  });
}

/** A link within the project: the file it leads to, and the heading there, if it names one. */
type Link = { shown: string; file: string; heading: string | null };

function linksOf(path: string, text: string): Link[] {
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = '', heading = null] = target.split('#');
      const from = file === '' ? path : normalize(join(dirname(path), file));
      return { shown: `${path}: ${target}`, file: from, heading };
    });
}

/** Whether there is such a file or folder; `deploy/secrets` is made by a deployment. */
function exists(path: string): boolean {
  return path === 'deploy/secrets' || existsSync(new URL(`../${path}`, import.meta.url));
}

function isFileFrom(document: string, file: string): boolean {
  if (exists(file)) return true;
  const folder = dirname(document) === '.' ? '' : `${dirname(document)}/`;
  return paths.some((path) => path.startsWith(folder) && `/${path}`.endsWith(`/${file}`));
}

function leadsSomewhere({ file, heading }: Link): boolean {
  if (!exists(file)) return false;
  if (heading === null) return true;
  const headings = [...readText(file).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  return headings.map(anchorOf).includes(heading);
}

/** The anchor that GitHub gives a heading. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}
