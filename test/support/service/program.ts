import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programFile } from '#src/start/embedded/build/bundle.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * The programs that tests start as processes: of the bundle that is built before all tests, which
 * starts with half the processor time, else their sources.
 */
export const MAIN = fileOf('src/main.ts');
export const BSS = fileOf('src/apps/cli/bss.ts');
/** The source of the service, as `npm run dev` and a checkout without a bundle run it. */
export const MAIN_SOURCE = join(ROOT, 'src/main.ts');

function fileOf(source: string): string {
  const bundle = process.env['TEST_BUNDLE'];
  return bundle === undefined ? join(ROOT, source) : programFile(bundle, source);
}
