import { fileURLToPath } from 'node:url';

/** The programs that tests start as processes. */
export const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
export const BSS = fileURLToPath(new URL('../../../src/cli/bss.ts', import.meta.url));
