import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What a file's name says of its tier, in `npm test` and in `npm run test:real`. */
const TIERS = ['', '.real', '.quiet'];

/** The files of a test in these tiers: `test/e2e/docker` is `test/e2e/docker.real.test.ts`. */
export function testFilesOf(root: string, test: string): string[] {
  return TIERS.map((tier) => `${test}${tier}.test.ts`).filter((file) =>
    existsSync(join(root, file)),
  );
}
