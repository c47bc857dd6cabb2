/**
 * The service and `bss` as few files for Node, which take half the processor time of their sources to
 * load: built where the sources have changed, in `.tools/service-<hash of the sources>`.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { buildOnce, filesIn, hashOf, runBuilder } from './build.mjs';
import { knownOf } from '../known-files.mjs';
import { processStart } from '../pid-lock.mjs';

/** The folders whose modules the programs import. */
const SOURCES = ['events', 'projections', 'src'];
const OTHERS = ['package.json', 'package-lock.json'];
const FOLDER = /^service-[0-9a-f]{16}$/;
/** Bundles that stay beside those in use: a checkout that goes back to its last state has its own. */
const KEPT = 3;

/** Its folder for the sources as they are, whether it is built or not. @throws Error without them */
export function bundleFolder(root) {
  const sources = SOURCES.flatMap((folder) => filesIn(root, folder));
  const files = [...sources.filter((name) => /\.m?ts$|\.mjs$/.test(name)), ...OTHERS];
  const hash = knownOf(root, { name: 'service', files }, () => hashOf(root, files));
  return join(root, '.tools', `service-${hash.slice(0, 16)}`);
}

/** The folder of the bundle of the sources as they are; null: there is none. */
export function findBundle(root) {
  try {
    const folder = bundleFolder(root);
    return existsSync(folder) ? folder : null;
  } catch {
    return null; // a checkout of parts
  }
}

/** The file in a bundle of the program with this source. */
export function programFile(folder, source) {
  return join(folder, `${basename(source, '.ts')}.js`);
}

/**
 * Builds it where it is missing.
 * @returns its folder
 * @throws Error with the reason where it cannot be built: a folder that cannot be written, or an
 *   installation without the packages for it
 */
export async function buildBundle(root, print) {
  const folder = bundleFolder(root);
  async function build() {
    const fresh = `${folder}.new`;
    await rm(fresh, { recursive: true, force: true });
    await runBuilder('./bundle-build.mjs', [root, fresh], print);
    await rename(fresh, folder);
    removeOld(join(root, '.tools'));
  }
  await buildOnce(root, { name: 'service', isBuilt: () => existsSync(folder), build }, print);
  return folder;
}

/** Keeps the bundle while this process runs, which loads parts of it when they are needed. */
export async function holdBundle(folder) {
  const mark = join(folder, 'users', String(process.pid));
  mkdirSync(join(folder, 'users'), { recursive: true });
  await writeFile(mark, processStart(process.pid) ?? '');
  process.once('exit', () => rmSync(mark, { force: true }));
}

function removeOld(tools) {
  const names = readdirSync(tools).filter((name) => FOLDER.test(name));
  const folders = names.map((name) => join(tools, name));
  const old = folders.toSorted((left, right) => madeAt(right) - madeAt(left)).slice(KEPT);
  for (const folder of old)
    if (!isInUse(join(folder, 'users'))) rmSync(folder, { recursive: true, force: true });
}

function madeAt(folder) {
  return statSync(folder).birthtimeMs;
}

function isInUse(users) {
  if (!existsSync(users)) return false;
  return readdirSync(users).some(
    (pid) => processStart(Number(pid)) === readFileSync(join(users, pid), 'utf8'),
  );
}
