#!/usr/bin/env node
/**
 * What every npm script and the `bss` command go through:
 * `node src/embedded/launch.mjs <start | test | run FILE> [arguments…]`
 *
 * It makes the checkout runnable (npm packages, a new enough Node), then runs the target: inside
 * this process where this Node reads TypeScript, else under our own Node as the only child.
 * Plain JavaScript for Node 18 and later, without dependencies, since it runs before either is
 * there. It says what it does on stderr: stdout belongs to the target.
 */
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import module from 'node:module';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { CannotInstall } from './npm.mjs';
import { NODE_MAJOR_MIN, ownNode } from './install-node.mjs';
import { installPackages } from './packages.mjs';

const SELF = fileURLToPath(import.meta.url);
const ROOT = dirname(dirname(dirname(SELF)));
const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP'];
/** How often it is looked whether the npm (or the launcher) that started us still lives. */
const PARENT_CHECK_MS = 250;

/** Runs one target to its end; the exit code is the target's. */
export async function launch(args) {
  const target = targetOf(args);
  if (target === null) {
    say('usage: node src/embedded/launch.mjs <start | test | run FILE> [arguments…]');
    process.exitCode = 2;
    return;
  }
  const isNew = Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN;
  let node = process.execPath;
  try {
    // The packages by the Node that will use them: npm leaves out those that need a newer one.
    if (isNew) await installPackages(ROOT, say);
    else node = await ownNode(ROOT, say);
  } catch (error) {
    // An error with a code is the file system's (a read-only checkout, a full disk).
    if (!(error instanceof CannotInstall) && error.code === undefined) throw error;
    say(error.message);
    process.exitCode = 1;
    return;
  }
  endWithParent();
  if (isNew) await runHere(target);
  else process.exitCode = await runUnder(node, args);
}

function targetOf([what, ...rest]) {
  if (what === 'start') return { file: join(ROOT, 'src', 'main.ts'), args: rest };
  if (what === 'test') {
    const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
    return {
      file: vitest,
      args: ['run', '--root', ROOT, '--config', 'test/vitest.config.ts', ...rest],
    };
  }
  if (what !== 'run' || rest[0] === undefined) return null;
  return { file: resolve(ROOT, rest[0]), args: rest.slice(1) };
}

/**
 * No process of its own: signals reach the target directly, its exit is ours. What was compiled once
 * is kept in the machine's temporary folder: half of what a short command takes is reading its code.
 */
async function runHere({ file, args }) {
  module.enableCompileCache?.();
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
 * Where npm or a launcher started us and is gone (kill -9, a hang-up, or a shell between us that
 * died of the signal it should have passed on), we end as well: as on SIGTERM. So nothing is left
 * that holds the ports and the data of the next start. A start by hand may outlive its shell.
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

function say(line) {
  process.stderr.write(`${line}\n`);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === SELF) {
  await launch(process.argv.slice(2));
}
