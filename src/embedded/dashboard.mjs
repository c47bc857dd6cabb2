/** Builds the dashboard (src/dashboard) for the browser, where its sources have changed. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { waitForLock } from './pid-lock.mjs';

/** How long to wait for another start's build. */
const WAIT_MS = 2 * 60_000;
/** The folders of what it is built from; of the events it has types alone. */
const SOURCES = ['src/dashboard', 'src/history'];

/** The folder of the built dashboard in a checkout; `sources` in it has the hash of its sources. */
export function dashboardFolder(root) {
  return join(root, '.tools', 'dashboard');
}

/** @returns whether it was built; false: the build of these sources was there */
export async function buildDashboard(root, print) {
  const hash = sourcesOf(root);
  if (isBuilt(root, hash)) return false;
  mkdirSync(join(root, '.tools'), { recursive: true });
  const release = await waitForLock(join(root, '.tools', 'dashboard.lock'), {
    waitMs: WAIT_MS,
    onWait: ({ pid }) => print(`Waiting for process ${pid}, which builds the dashboard…`),
  });
  try {
    if (isBuilt(root, hash)) return false;
    print('Building the dashboard…');
    await build(root, hash, print);
    return true;
  } finally {
    release();
  }
}

async function build(root, hash, print) {
  const { build: bundle } = await import('vite');
  const folder = dashboardFolder(root);
  // Beside the folder: a build that fails leaves the former one.
  const fresh = `${folder}.new`;
  await rm(fresh, { recursive: true, force: true });
  await inProduction(() =>
    bundle({
      configFile: join(root, 'src', 'dashboard', 'vite.config.ts'),
      root: join(root, 'src', 'dashboard'),
      logLevel: 'warn',
      build: { outDir: fresh, emptyOutDir: true },
    }),
  );
  for (const name of filesBelow(fresh)) {
    const bytes = await readFile(name);
    await writeFile(`${name}.gz`, await promisify(gzip)(bytes, { level: 9 }));
    await writeFile(`${name}.br`, await promisify(brotliCompress)(bytes));
  }
  print(`The dashboard's first load: ${(await firstLoadOf(fresh)) / 1000} kB compressed.`);
  await writeFile(join(fresh, 'sources'), hash);
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
}

/** Vite builds for NODE_ENV, which is that of the service or of the tests: the same build for all. */
async function inProduction(work) {
  const { NODE_ENV } = process.env;
  process.env.NODE_ENV = 'production';
  try {
    await work();
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
  }
}

/**
 * Bytes that a browser loads before the list of sessions is there, with gzip: the page and what it
 * names, which includes the scripts that its script imports.
 */
export async function firstLoadOf(folder) {
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  const named = page.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g);
  const files = new Set(['index.html', ...[...named].map(([, name]) => name)]);
  const sizes = [...files].map((name) => statSync(join(folder, `${name}.gz`)).size);
  return sizes.reduce((sum, size) => sum + size, 0);
}

function isBuilt(root, hash) {
  try {
    return readFileSync(join(dashboardFolder(root), 'sources'), 'utf8') === hash;
  } catch {
    return false;
  }
}

/** A hash of all that the build depends on: its sources, the versions of packages, this file. */
function sourcesOf(root) {
  const hash = createHash('sha256');
  const sources = SOURCES.flatMap((folder) => filesBelow(join(root, folder)));
  const others = ['package-lock.json', 'src/embedded/dashboard.mjs'].map((name) =>
    join(root, name),
  );
  const files = [...sources.filter((name) => !name.endsWith('.md')), ...others];
  for (const name of files.toSorted((left, right) => (left < right ? -1 : 1)))
    hash.update(name.slice(root.length)).update('\0').update(readFileSync(name)).update('\0');
  return hash.digest('hex');
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}
