import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { listedMax, type ProfileContents } from '#events/profile.ts';

/**
 * A program: prints what the files that `contents.ts` has picked name, as JSON. A file that cannot
 * be read counts as empty: the list is for people.
 */

const [, , folder = ''] = process.argv;

function rowsOf(file: string, query: string): Record<string, unknown>[] {
  const path = join(folder, file);
  if (!existsSync(path)) return [];
  try {
    const database = new DatabaseSync(path, { allowExtension: false });
    database.exec('PRAGMA trusted_schema = OFF');
    return database.prepare(query).all();
  } catch {
    return [];
  }
}

const cookies = rowsOf(
  'cookies',
  `SELECT DISTINCT host_key, name FROM cookies ORDER BY 1, 2 LIMIT ${listedMax.cookies + 1}`,
).map(({ host_key: domain, name }) => {
  return { domain: String(domain).slice(0, 256), name: String(name).slice(0, 128) };
});

/** `https://shop.example/`, followed by `^…` where it is stored for another site's page. */
const stored = rowsOf('quota', 'SELECT DISTINCT storage_key FROM buckets LIMIT 10000').map(
  ({ storage_key: key }) => String(key).split('^')[0] ?? '',
);

/** The keys of local storage begin with the origin; compression leaves most of them readable. */
function localOrigins(): string[] {
  const files = readdirSync(folder).filter((name) => name.startsWith('local-'));
  return files.flatMap((name) => {
    const text = readFileSync(join(folder, name), 'latin1');
    const found = text.matchAll(/META(?:ACCESS)?:(https?:\/\/[a-z0-9.[\]:-]{1,250})/g);
    return [...found].map(([, origin = '']) => origin);
  });
}

function originOf(text: string): string[] {
  const url = URL.parse(text);
  const isWeb = url !== null && (url.protocol === 'https:' || url.protocol === 'http:');
  return isWeb && url.origin.length <= 256 ? [url.origin] : [];
}

const origins = [...new Set([...stored, ...localOrigins()].flatMap(originOf))].toSorted();
const isCut = origins.length > listedMax.origins || cookies.length > listedMax.cookies;
const contents: ProfileContents = {
  origins: origins.slice(0, listedMax.origins),
  cookies: cookies.slice(0, listedMax.cookies),
  ...(isCut ? { isCut } : {}),
};
process.stdout.write(JSON.stringify(contents));
