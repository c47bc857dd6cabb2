import { expect, test } from 'vitest';
import { checkEngine } from '#src/apps/doctor/check-engine.ts';
import type { EngineFacts, ImageFacts } from '#src/apps/doctor/facts.ts';

/** The doctor's finding about the image of the browsers. */

const DAY = 86_400_000;
const engine: EngineFacts = {
  version: '28.1.0',
  hasSeccomp: true,
  filtersBridges: true,
  image: null,
  reachable: '',
  hasNetwork: true,
  sandboxRefusal: '',
};

function findingOf(image: ImageFacts | null) {
  const [found] = checkEngine({ ...engine, image }).filter(({ check }) => check.endsWith('image'));
  return found;
}

function aged(ageMs: number, isGiven = false): ImageFacts {
  return { version: '150.0.7871.100', ageMs, isGiven };
}

test('an image is judged by its age in days', () => {
  const levels = [0, 7.9, 8, 13.9, 14, 90].map((days) => findingOf(aged(days * DAY))?.level);
  expect(levels).toEqual(['ok', 'ok', 'warn', 'warn', 'bad', 'bad']);
  expect(findingOf(aged(14 * DAY))?.what).toBe('Chromium 150.0.7871.100, 14 days old');
});

test('the advice names the command, or the variable of an image that is not built here', () => {
  expect(findingOf(aged(20 * DAY))?.advice).toContain('bss image build');
  expect(findingOf(aged(20 * DAY, true))?.advice).toContain('BROWSER_IMAGE');
});

test('a missing image is built by the first start', () => {
  expect(findingOf(null)).toMatchObject({ level: 'warn', advice: 'the first start builds it' });
});
