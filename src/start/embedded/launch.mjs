#!/usr/bin/env node
/**
 * The entry point of npm scripts and of the `bss` command:
 * `node src/start/embedded/launch.mjs <start | dev | bss | test | run FILE> [arguments…]`
 *
 * It installs what the checkout needs (npm packages, a new enough Node), then runs the target: in
 * this process if this Node runs TypeScript, else under the installed Node as the only child.
 * Plain JavaScript for Node 18 and later without dependencies, since it runs before either is
 * installed. Its messages go to stderr: stdout belongs to the target.
 */
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildBundle, findBundle, holdBundle, programFile } from './build/bundle.mjs';
import { enableCompileCache } from './compile-cache.mjs';
import { buildDashboard } from './build/dashboard.mjs';
import { CannotInstall } from './install/npm.mjs';
import { NODE_MAJOR_MIN, installNode } from './install/install-node.mjs';
import { installPackages } from './install/packages.mjs';

const SELF = fileURLToPath(import.meta.url);
const ROOT = dirname(dirname(dirname(dirname(SELF))));
const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP'];
/** How often to check whether the parent (npm or the launcher) still lives. */
const PARENT_CHECK_MS = 1_000;

/** Runs a target to its end; the exit code is the target's. */
export async function launch(args) {
  const target = targetOf(args);
  if (target === null) {
    print(
      'usage: node src/start/embedded/launch.mjs <start | dev | bss | test | run FILE> [arguments…]',
    );
    process.exitCode = 2;
    return;
  }
  const isNew = Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN;
  let node = process.execPath;
  try {
    // Install with the Node that will run: npm leaves out packages that need a newer one.
    if (isNew) await installPackages(ROOT, print);
    else node = await installNode(ROOT, print);
  } catch (error) {
    // An error with a code is from the file system (read-only checkout, full disk).
    if (!(error instanceof CannotInstall) && error.code === undefined) throw error;
    print(error.message);
    process.exitCode = 1;
    return;
  }
  endWithParent();
  if (isNew) await runHere(target, await buildFor(args[0]));
  else process.exitCode = await runUnder(node, args);
}

/** Builds what the target is to have. @returns the folder of the bundle that it runs from, or null */
async function buildFor(what) {
  if (what === 'bss') return findBundle(ROOT);
  if (what !== 'start' && what !== 'dev') return null;
  const bundle = what === 'start' ? tryBuildBundle() : null;
  await tryBuildDashboard();
  return bundle;
}

/** The service starts from its sources, too. */
async function tryBuildBundle() {
  try {
    const folder = await buildBundle(ROOT, print);
    await holdBundle(folder);
    return folder;
  } catch (error) {
    print(`The service runs from its sources, as it could not be bundled: ${error.message}`);
    return null;
  }
}

/** The service starts without a dashboard, too. */
async function tryBuildDashboard() {
  try {
    await buildDashboard(ROOT, print);
  } catch (error) {
    print(`The dashboard could not be built: ${error.message}`);
  }
}

function targetOf([what, ...rest]) {
  if (what === 'start' || what === 'dev') return { program: 'src/main.ts', args: rest };
  if (what === 'bss') return { program: 'src/apps/cli/bss.ts', args: rest };
  if (what === 'test') {
    const vitest = 'node_modules/vitest/vitest.mjs';
    const config = join(ROOT, 'test', 'vitest.config.ts');
    return { program: vitest, args: ['run', '--config', config, ...rest] };
  }
  if (what !== 'run' || rest[0] === undefined) return null;
  return { program: rest[0], args: rest.slice(1) };
}

/** Runs the target in this process: signals reach it directly, its exit code is ours. */
async function runHere({ program, args }, bundle) {
  const file = bundle === null ? resolve(ROOT, program) : programFile(bundle, program);
  enableCompileCache(ROOT, bundle);
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

/**
 * Runs this launcher again under a newer Node and waits for it.
 * @returns its exit code; 128 + n when signal n ended it
 */
async function runUnder(node, args) {
  const path = [dirname(node), process.env.PATH].filter(Boolean).join(delimiter);
  const env = { ...process.env, PATH: path, BSS_LAUNCHED: '1' };
  const child = spawn(node, [SELF, ...args], { stdio: 'inherit', env });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/**
 * Ends this process, as on SIGTERM, when the npm or launcher that started it is gone (kill -9, a
 * hang-up, or a shell in between that died of the signal). Otherwise this process would keep the
 * ports and the data folder from the next start. A start by hand may outlive its shell.
 */
function endWithParent() {
  if (process.env.npm_lifecycle_event === undefined && !process.env.BSS_LAUNCHED) return;
  delete process.env.BSS_LAUNCHED;
  const parent = process.ppid;
  const check = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(check);
    process.kill(process.pid, 'SIGTERM');
  }, PARENT_CHECK_MS);
  check.unref();
}

function print(line) {
  process.stderr.write(`${line}\n`);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === SELF) {
  await launch(process.argv.slice(2));
}
