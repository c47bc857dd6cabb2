/** Brings node_modules to what package-lock.json says. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './npm.mjs';
import { waitForLock } from './pid-lock.mjs';

/** The longest that another start's installation is waited for. */
const WAIT_MS = 10 * 60_000;

/** @throws CannotInstall */
export async function installPackages(root, say) {
  if (packagesMatch(root)) return;
  mkdirSync(join(root, '.tools'), { recursive: true });
  const release = await waitForLock(join(root, '.tools', 'packages.lock'), {
    waitMs: WAIT_MS,
    onWait: ({ pid }) => say(`Waiting for process ${pid}, which installs the npm packages…`),
  });
  try {
    if (packagesMatch(root)) return;
    say('Installing the npm packages (npm ci)…');
    await npm(['ci', '--include=dev', '--no-audit', '--no-fund'], root);
    writeFileSync(markFile(root), markOf(root));
  } finally {
    release();
  }
}

/**
 * npm writes node_modules/.package-lock.json last, so its presence says that an installation was
 * finished, and its content which one, whether it was made by us or by hand.
 */
export function packagesMatch(root) {
  const wanted = readPackages(join(root, 'package-lock.json'));
  const present = readPackages(join(root, 'node_modules', '.package-lock.json'));
  if (wanted === null || present === null) return false;
  if (readText(markFile(root)) === markOf(root)) return true;
  return Object.entries(wanted).every(([path, want]) => {
    if (path === '') return true;
    const have = present[path];
    if (have === undefined) return want.optional === true && !isForHere(want);
    return have.version === want.version && have.integrity === want.integrity;
  });
}

/**
 * Whether an optional package must be there: one for this very platform. They are missing in a
 * folder from another machine, and where an npm run by an old Node left out what needs a newer one.
 */
function isForHere({ os, cpu, libc }) {
  if (!os?.includes(process.platform) || !cpu?.includes(process.arch)) return false;
  return libc === undefined || libc.includes(libcHere());
}

let libcFound;

function libcHere() {
  if (libcFound !== undefined) return libcFound;
  // Without it the report looks up the names of all open connections.
  process.report.excludeNetwork = true;
  libcFound = process.report.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl';
  return libcFound;
}

/**
 * Says that npm ci has done what it can for this lockfile on this platform: a registry that lacks
 * an optional package must not make every start install anew.
 */
function markFile(root) {
  return join(root, 'node_modules', '.installed');
}

function markOf(root) {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
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
