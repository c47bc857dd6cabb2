#!/usr/bin/env node
/** The `bss` command: starts bss.ts under a Node that reads TypeScript, whatever Node this is. */
import { launch } from '#src/embedded/launch.mjs';

await launch(['run', 'src/cli/bss.ts', ...process.argv.slice(2)]);
