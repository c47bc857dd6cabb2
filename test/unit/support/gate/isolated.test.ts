import { expect, it } from 'vitest';
import { sourceFiles } from '#test/support/sources/source-files.ts';
import { ISOLATED } from '#test/tiers.ts';

it('a test that replaces a module has a process of its own: another test may have imported that', () => {
  const replacing = sourceFiles().filter(({ text }) => /^vi\.(?:mock|doMock)\(/m.test(text));
  expect(replacing.length).toBeGreaterThan(0);
  expect(replacing.map(({ path }) => path).filter((path) => !ISOLATED.includes(path))).toEqual([]);
});
