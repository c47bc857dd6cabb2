#!/usr/bin/env node
/**
 * The `bss` command. Runs bss.ts in this process if it can: a Node that reads TypeScript, and the
 * packages of the lock file; `--help` and `--version` need none. From the bundle, if `npm start` has
 * built one of these sources. Otherwise launch.mjs first installs what is missing. Plain JavaScript
 * for Node 18 and later.
 */
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findBundle, programFile } from '../../start/embedded/build/bundle.mjs';
import { enableCompileCache } from '../../start/embedded/compile-cache.mjs';

const ROOT = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const NODE_MAJOR_MIN = 24;
const args = process.argv.slice(2);

if (await canRunHere()) {
  const bundle = findBundle(ROOT);
  enableCompileCache(ROOT, bundle);
  if (bundle === null) await import('./bss.ts');
  else await import(pathToFileURL(programFile(bundle, 'src/apps/cli/bss.ts')).href);
} else {
  const { launch } = await import('../../start/embedded/launch.mjs');
  await launch(['bss', ...args]);
}

async function canRunHere() {
  if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) return false;
  // Under npm the launcher watches that npm lives.
  if (process.env.npm_lifecycle_event !== undefined) return false;
  if (args[0] === '--version' || args.includes('--help') || args.includes('-h')) return true;
  const { packagesMatch } = await import('../../start/embedded/install/packages.mjs');
  return packagesMatch(ROOT);
}
