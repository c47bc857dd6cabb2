/** Installs Node and npm, for machines whose Node cannot run TypeScript. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CannotInstall, npm } from './npm.mjs';
import { waitForLock } from '../pid-lock.mjs';
import { pinnedFor, verify } from './pinned.mjs';
import { toolFolder, toolFolders, toolName } from './tool-folder.mjs';

export const NODE_MAJOR_MIN = 24;
/** How long to wait for another start's installation. */
const WAIT_MS = 10 * 60_000;

/**
 * The path of a new enough Node, installed if missing. Node's npm package contains the release
 * without npm and runs no install script.
 * @throws CannotInstall
 */
export async function installNode(root, print) {
  const name = toolName('node', NODE_MAJOR_MIN);
  const known = toolFolders(root).flatMap((folder) => [
    join(folder, name, 'bin', 'node'),
    join(folder, 'node', 'bin', 'node'),
  ]);
  const found = known.find(isNewEnough);
  if (found !== undefined) return found;
  const tools = toolFolder(root);
  const home = join(tools, name);
  const node = join(home, 'bin', 'node');
  mkdirSync(tools, { recursive: true });
  const release = await waitForLock(join(tools, 'node.lock'), {
    waitMs: WAIT_MS,
    onWait: ({ pid }) =>
      print(`Waiting for process ${pid}, which installs Node ${NODE_MAJOR_MIN}…`),
  });
  try {
    if (isNewEnough(node)) return node;
    print(
      `Installing Node ${NODE_MAJOR_MIN} into ${tools}, from the npm registry, without root ` +
        `(this machine's is ${process.version})…`,
    );
    await install(tools, home);
    return node;
  } finally {
    release();
  }
}

/** Installs into a staging folder and then renames it, so that a partial one is never used. */
async function install(tools, home) {
  const stage = join(tools, 'node.new');
  const name = `node-${process.platform}-${process.arch}`;
  const installed = join(stage, 'node');
  const itsNpm = join(installed, 'lib', 'node_modules', 'npm');
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  try {
    await fetchPackage(name, pinnedFor('node'), installed);
    if (!isNewEnough(join(installed, 'bin', 'node'))) {
      throw new CannotInstall(`the npm package ${name} does not run on this machine`);
    }
    await fetchPackage('npm', pinnedFor('npm'), itsNpm);
    for (const command of ['npm', 'npx']) {
      const script = join('..', 'lib', 'node_modules', 'npm', 'bin', `${command}-cli.js`);
      symlinkSync(script, join(installed, 'bin', command));
    }
  } catch (error) {
    throw new CannotInstall(
      `Node ${NODE_MAJOR_MIN} or newer is required; this is ${process.version}, and ${name} ` +
        `could not be installed from the npm registry. Install Node ${NODE_MAJOR_MIN}, or make ` +
        `a registry reachable for npm.\n${error.message}`,
    );
  }
  rmSync(home, { recursive: true, force: true });
  renameSync(installed, home);
  rmSync(stage, { recursive: true, force: true });
}

/** Unpacks a package of npm's registry into a new folder, if its checksum is the pinned one. */
async function fetchPackage(name, { version, sha256 }, folder) {
  const stage = `${folder}.fetched`;
  mkdirSync(stage, { recursive: true });
  mkdirSync(folder, { recursive: true });
  await npm(['pack', `${name}@${version}`, '--pack-destination', stage, '--ignore-scripts'], stage);
  const file = join(stage, `${name}-${version}.tgz`);
  verify(readFileSync(file), sha256, `${name}@${version}`);
  const tar = ['-xzf', file, '--strip-components=1', '--no-same-owner', '-C', folder];
  const unpacked = spawnSync('tar', tar, { encoding: 'utf8' });
  if (unpacked.status !== 0) throw new Error(`tar failed: ${unpacked.stderr ?? unpacked.error}`);
  rmSync(stage, { recursive: true, force: true });
}

function isNewEnough(node) {
  const found = spawnSync(node, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  return found.status === 0 && Number.parseInt(found.stdout.slice(1), 10) >= NODE_MAJOR_MIN;
}
