import { basename, dirname } from 'node:path';
import { isDocument } from './change.ts';

/**
 * The changed file that a test is about, if there is one: itself, or a file, no document, in a
 * folder of the product that is named like the test or like a folder of it.
 * `test/contract/browsers/ends.test.ts` is about `src/browsers`,
 * `test/e2e/session.real.test.ts` about `src/kernel/domain/session`.
 */
export function touchedBy(test: string, changed: readonly string[]): string | null {
  const [name = ''] = basename(test).split('.', 1);
  // Without `test` and the level: `contract`, `e2e`.
  const subjects = [...foldersOf(test).slice(2), name];
  const isSubject = (path: string): boolean =>
    !path.startsWith('test/') &&
    !isDocument(path) &&
    foldersOf(path).some((folder) => subjects.includes(folder));
  return changed.find((path) => path === test || isSubject(path)) ?? null;
}

const foldersOf = (path: string): string[] => dirname(path).split('/');
