import { describe, expect, test } from 'vitest';
import {
  newestOf,
  tagOf,
  temporarySince,
  temporaryTag,
  type BrowserImage,
} from '#src/browsers/docker/browser-image.ts';
import { removable } from '#src/browsers/docker/old-images.ts';
import { rebuildAt } from '#src/browsers/docker/current-image.ts';
import { parseVersion } from '#src/browsers/chromium/program-version.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 23);

/** An image that was made some days ago. */
function image(id: string, days: number, changes: Partial<BrowserImage> = {}): BrowserImage {
  const createdAt = NOW - days * DAY;
  const parts = {
    version: '150.0.7871.100',
    base: 'c4e1face3389',
    recipe: 'eb7227951ec3',
    isLinked: true,
    hasRelay: true,
  };
  return { id, name: `browser:${id}`, createdAt, builtAt: createdAt, ...parts, ...changes };
}

test('a tag has Chromium’s version, the base image and the recipe', () => {
  expect(tagOf({ version: '150.0.7871.100', base: 'c4e1face3389', recipe: 'eb7227951ec3' })).toBe(
    'browser-session-service/browser:150.0.7871.100-c4e1face3389-eb7227951ec3',
  );
});

test('a version is read from what Chromium prints, whatever its script says before', () => {
  const printed = 'chromium: 9: [: unexpected\nChromium 150.0.7871.100 built on Debian 12.11\n';
  expect(parseVersion(printed)).toBe('150.0.7871.100');
  expect(parseVersion('sh: 1: chromium: not found')).toBeNull();
});

test('a temporary tag tells when its build began', () => {
  expect(temporarySince(temporaryTag(NOW))).toBe(NOW);
  expect(temporarySince('browser-session-service/browser:150.0.7871.100-a-b')).toBeNull();
});

test('the newest image is the one that was made last, if it has a tag', () => {
  expect(newestOf([image('b', 3), image('a', 1), image('c', 9)])?.id).toBe('a');
  expect(newestOf([])).toBeNull();
  expect(newestOf([image('a', 1, { name: 'a' }), image('b', 3)])?.id).toBe('b');
});

describe('old images', () => {
  const rules = { recipe: 'eb7227951ec3', now: NOW, isUsed: () => false };
  const ids = (images: readonly BrowserImage[]) => images.map(({ id }) => id);

  test('beyond the last two of the recipe are removed', () => {
    const images = [image('c', 9), image('a', 1), image('d', 16), image('b', 2)];
    expect(ids(removable(images, rules))).toEqual(['c', 'd']);
  });

  test('that a container uses are not', () => {
    const images = [image('a', 1), image('b', 2), image('c', 9), image('d', 16)];
    expect(ids(removable(images, { ...rules, isUsed: (id) => id === 'c' }))).toEqual(['d']);
  });

  test('of another recipe serve another release for 30 days', () => {
    const other = { recipe: '000000000000' };
    const images = [image('a', 1), image('other', 30, other), image('older', 31, other)];
    expect(ids(removable(images, rules))).toEqual(['older']);
  });
});

describe('a rebuild', () => {
  const times = { builtAt: NOW, everyMs: 7 * DAY, startedAt: NOW + DAY, share: 0 };

  test('is due a period after the last build, spread over a tenth of it', () => {
    expect(rebuildAt(times)).toBe(NOW + 7 * DAY);
    expect(rebuildAt({ ...times, share: 1 })).toBe(NOW + 7.7 * DAY);
  });

  test('of an old image is not due before five minutes after the start', () => {
    const startedAt = NOW + 30 * DAY;
    expect(rebuildAt({ ...times, startedAt })).toBe(startedAt + 5 * 60_000);
  });
});
