/** Installs the packages of package-lock.json into node_modules. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { knownOf } from '../known-files.mjs';
import { npm } from './npm.mjs';
import { waitForLock } from '../pid-lock.mjs';

const LOCK_FILE = 'package-lock.json';
const INSTALLED = 'node_modules/.package-lock.json';
/**
 * Marks a completed npm ci for this lock file and platform: if the registry lacks an optional
 * package, later starts must not install again.
 */
const MARK = 'node_modules/.installed';
/** How long to wait for another start's installation. */
const WAIT_MS = 10 * 60_000;

/** @throws CannotInstall */
export async function installPackages(root, print) {
  if (packagesMatch(root)) return;
  mkdirSync(join(root, '.tools'), { recursive: true });
  const release = await waitForLock(join(root, '.tools', 'packages.lock'), {
    waitMs: WAIT_MS,
    onWait: ({ pid }) => print(`Waiting for process ${pid}, which installs the npm packages…`),
  });
  try {
    if (packagesMatch(root)) return;
    print('Installing the npm packages (npm ci)…');
    await npm(['ci', '--include=dev', '--no-audit', '--no-fund'], root);
    const missing = missingFeatures(root);
    if (missing.length > 0)
      print(`npm could not install ${missing.join(', ')}: what needs them will say so.`);
    writeFileSync(join(root, MARK), markOf(root));
  } finally {
    release();
  }
}

/** The packages of single features that are not there: npm passes over one that it cannot get. */
function missingFeatures(root) {
  const { optionalDependencies = {} } = JSON.parse(readText(join(root, 'package.json')) ?? '{}');
  const isThere = (name) => existsSync(join(root, 'node_modules', name));
  return Object.keys(optionalDependencies).filter((name) => !isThere(name));
}

/**
 * npm writes node_modules/.package-lock.json last. Its presence shows that an installation was
 * completed, and its content which one, whether by the launcher or by hand.
 */
export function packagesMatch(root) {
  const files = [LOCK_FILE, INSTALLED, MARK];
  const match = () => (doPackagesMatch(root) ? 'yes' : null);
  return knownOf(root, { name: 'packages', files }, match) !== null;
}

function doPackagesMatch(root) {
  const wanted = readPackages(join(root, LOCK_FILE));
  const present = readPackages(join(root, INSTALLED));
  if (wanted === null || present === null) return false;
  if (readText(join(root, MARK)) === markOf(root)) return true;
  return Object.entries(wanted).every(([path, want]) => {
    if (path === '') return true;
    const have = present[path];
    if (have === undefined) return want.optional === true && !isForHere(want);
    return have.version === want.version && have.integrity === want.integrity;
  });
}

/**
 * Whether an optional package is for this platform and so must be installed. It is missing if
 * node_modules was copied from another machine, or if npm ran under a too old Node.
 */
function isForHere({ os, cpu, libc }) {
  if (!os?.includes(process.platform) || !cpu?.includes(process.arch)) return false;
  return libc === undefined || libc.includes(libcHere());
}

let libcFound;

function libcHere() {
  if (libcFound !== undefined) return libcFound;
  // Otherwise the report resolves the names of all open connections.
  process.report.excludeNetwork = true;
  libcFound = process.report.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl';
  return libcFound;
}

function markOf(root) {
  const hash = createHash('sha256').update(readFileSync(join(root, LOCK_FILE)));
  return `${hash.digest('hex')} ${process.platform} ${process.arch}`;
}

function readPackages(path) {
  try {
    return JSON.parse(readText(path) ?? '').packages ?? null;
  } catch {
    return null;
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
