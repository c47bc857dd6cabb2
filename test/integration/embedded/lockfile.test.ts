import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

type Package = { optionalDependencies?: Record<string, string> };

const lockfile = new URL('../../../package-lock.json', import.meta.url);

test('the lockfile has every platform package that it names, or npm ci refuses it', () => {
  const { packages } = JSON.parse(readFileSync(lockfile, 'utf8')) as {
    packages: Record<string, Package>;
  };
  const names = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)));
  const absent = Object.values(packages)
    .flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}))
    .filter((name) => !names.has(name));
  expect(absent).toEqual([]);
});
