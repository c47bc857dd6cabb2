/** Builds the dashboard (src/apps/dashboard) for the browser, where its sources have changed. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildOnce, filesIn, hashOf, runBuilder } from './build.mjs';

/** The folders of what it is built from; of the events it has types alone. */
const SOURCES = [
  'src/apps/dashboard',
  'src/kernel/history',
  'src/features/recordings',
  'src/kernel/async',
];
/** What else the build depends on: the versions of packages, and how it is built. */
const OTHERS = [
  'LICENSE',
  'package-lock.json',
  'src/roles/api/dashboard/pages.ts',
  'src/start/embedded/build/dashboard-build.mjs',
  'src/start/embedded/build/third-party.mjs',
];

/** The folder of the built dashboard in a checkout; `sources` in it has the hash of its sources. */
export function dashboardFolder(root) {
  return join(root, '.tools', 'dashboard');
}

/** @returns whether it was built; false: the build of these sources was there */
export async function buildDashboard(root, print) {
  const hash = sourcesOf(root);
  const folder = dashboardFolder(root);
  async function build() {
    // Beside the folder: a build that fails leaves the former one.
    const fresh = `${folder}.new`;
    await rm(fresh, { recursive: true, force: true });
    await runBuilder('./dashboard-build.mjs', [root, fresh], print);
    print(`The dashboard's first load: ${(await firstLoadOf(fresh)) / 1000} kB compressed.`);
    writeFileSync(join(fresh, 'sources'), hash);
    await rm(folder, { recursive: true, force: true });
    await rename(fresh, folder);
  }
  const isBuilt = () => builtFrom(folder) === hash;
  return buildOnce(root, { name: 'dashboard', isBuilt, build }, print);
}

/**
 * Bytes that a browser loads before the list of sessions is there, with gzip: the page and what it
 * names, which includes the scripts that its script imports.
 */
export async function firstLoadOf(folder) {
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  const named = page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g);
  const files = new Set(['index.html', ...[...named].map(([, name]) => name)]);
  const sizes = [...files].map((name) => statSync(join(folder, `${name}.gz`)).size);
  return sizes.reduce((sum, size) => sum + size, 0);
}

function builtFrom(folder) {
  try {
    return readFileSync(join(folder, 'sources'), 'utf8');
  } catch {
    return null;
  }
}

function sourcesOf(root) {
  const sources = SOURCES.flatMap((folder) => filesIn(root, folder));
  return hashOf(root, [...sources.filter((name) => !name.endsWith('.md')), ...OTHERS]);
}
