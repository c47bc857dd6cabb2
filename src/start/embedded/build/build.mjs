/**
 * What is made of the sources is built once for a state of them, by a program of its own: this
 * process, which may be a service for months, does not keep what the build has loaded.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForLock } from '../pid-lock.mjs';

/** How long to wait for another start's build. */
const WAIT_MS = 2 * 60_000;
const ERROR_LINES_MAX = 10;

/**
 * Builds under a lock what is not built yet, in `.tools`.
 * @param what `name` of the lock file, and how messages call it; `isBuilt` tells whether the build of
 *   these sources is there; `build` makes it
 * @returns whether it was built; false: it was there
 */
export async function buildOnce(root, { name, isBuilt, build }, print) {
  if (isBuilt()) return false;
  mkdirSync(join(root, '.tools'), { recursive: true });
  const release = await waitForLock(join(root, '.tools', `${name}.lock`), {
    waitMs: WAIT_MS,
    onWait: ({ pid }) => print(`Waiting for process ${pid}, which builds the ${name}…`),
  });
  try {
    if (isBuilt()) return false;
    print(`Building the ${name}…`);
    await build();
    return true;
  } finally {
    release();
  }
}

/**
 * Runs a builder of this folder to its end and prints its lines.
 * @throws Error with the builder's first lines on stderr, if it fails
 */
export async function runBuilder(file, args, print) {
  const program = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, [program, ...args], {
    // Vite builds for NODE_ENV, which is that of the service or of the tests: the same for all.
    env: { ...process.env, NODE_ENV: 'production' },
    // The builder ends when this process has: the channel is closed then.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const [said, problems] = [child.stdout, child.stderr].map((stream) => {
    const chunks = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    return () => linesOf(Buffer.concat(chunks).toString());
  });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => resolve(exitCode ?? signal));
  });
  const reason = problems().slice(0, ERROR_LINES_MAX).join('\n');
  if (code !== 0) throw new Error(reason === '' ? `the build ended with ${code}` : reason);
  for (const line of [...said(), ...problems()]) print(line);
}

/** Runs the work of a builder's process: it ends with its parent, and says on stderr why it failed. */
export async function runAsBuilder(work) {
  process.once('disconnect', () => process.exit(1));
  try {
    await work(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
  process.removeAllListeners('disconnect');
  process.disconnect?.();
}

/** A hash of the names and the bytes of files; the names are below `root`. */
export function hashOf(root, names) {
  const hash = createHash('sha256');
  for (const name of names.toSorted())
    hash
      .update(name)
      .update('\0')
      .update(readFileSync(join(root, name)))
      .update('\0');
  return hash.digest('hex');
}

/** The names of all files in a folder below `root`. */
export function filesIn(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesIn(root, name) : [name];
  });
}

function linesOf(text) {
  return text.split('\n').filter((line) => line.trim() !== '');
}
