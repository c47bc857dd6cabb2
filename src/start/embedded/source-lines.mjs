/**
 * Loaded first by each program of the bundle: the stacks of its errors name the lines of the sources.
 * A map is read when a stack with new places is. Where Node reads the maps itself, it does so at each
 * start, which takes 0.3 s of processor time and 40 MB for as long as the process runs.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { pathToFileURL } from 'node:url';

const FOLDER = pathToFileURL(`${import.meta.dirname}/`).href;
const PLACE = /file:\/\/[^\s()]+\.js:\d+:\d+/g;
const PARTS = /^(.*):(\d+):(\d+)$/;
/** Stacks of a failure that repeats have the same places. */
const PLACES_MAX = 1_000;
const known = new Map();

Error.prepareStackTrace = (error, frames) => {
  const maps = new Map();
  const lines = frames.map((frame) =>
    // oxlint-disable-next-line typescript/no-base-to-string -- a call site has its own toString.
    `    at ${String(frame)}`.replaceAll(PLACE, (place) => sourceOf(place, maps)),
  );
  return [headOf(error), ...lines].join('\n');
};

function headOf(error) {
  try {
    return String(error);
  } catch {
    return 'Error';
  }
}

function sourceOf(place, maps) {
  if (!place.startsWith(FOLDER)) return place;
  const before = known.get(place);
  if (before !== undefined) return before;
  const [, url, line, column] = PARTS.exec(place);
  const found = find(url, { line: line - 1, column: column - 1 }, maps) ?? place;
  if (known.size === PLACES_MAX) known.clear();
  known.set(place, found);
  return found;
}

function find(url, { line, column }, maps) {
  if (!maps.has(url)) maps.set(url, readMap(url));
  const entry = maps.get(url)?.findEntry(line, column);
  // Packages have no maps: the place before one of theirs is of another file.
  if (entry?.generatedLine !== line) return null;
  return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

function readMap(url) {
  try {
    const map = JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8'));
    const sources = map.sources.map((source) => new URL(source, url).href);
    return new SourceMap({ ...map, sources });
  } catch {
    return null;
  }
}
