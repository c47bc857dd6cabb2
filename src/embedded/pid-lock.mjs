/**
 * Lock files that name their holder by process id and start time, so that a lock left by a dead
 * process (kill -9, power cut) is known to be stale even where its number was given out again.
 * Plain JavaScript: launch.mjs needs it before there is a Node that reads TypeScript.
 *
 * Not promised: exclusion between machines or between containers that share a folder but not
 * their process ids.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 50;
/** Each try that fails means that another process took or left the lock in that very moment. */
const TRIES_MAX = 20;

/** Takes the lock, or says who holds it. Throws where the lock's folder cannot be written. */
export function takeLock(path) {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const mine = JSON.stringify({ pid: process.pid, start: processStart(process.pid) });
  writeFileSync(draft, mine);
  try {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      // link, not an exclusive open: the lock appears with its content, never empty.
      if (linked(draft, path)) return { taken: true, release: () => release(path, mine) };
      const text = readText(path);
      const holder = text === null ? null : parseHolder(text);
      if (holder !== null && processStart(holder.pid) === holder.start) {
        return { taken: false, holder };
      }
      if (text !== null) setAside(path, text);
    }
    throw new Error(`the lock ${path} changes hands too fast to be taken`);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Takes the lock as soon as its holder leaves it, and returns its release.
 * `onWait` is called once when there is somebody to wait for.
 */
export async function waitForLock(path, { waitMs, onWait = () => {} }) {
  const deadline = Date.now() + waitMs;
  for (let waited = false; ; waited = true) {
    const lock = takeLock(path);
    if (lock.taken) return lock.release;
    if (Date.now() >= deadline) {
      throw new Error(`process ${lock.holder.pid} held ${path} for more than ${waitMs} ms`);
    }
    if (!waited) onWait(lock.holder);
    await delay(POLL_MS);
  }
}

/**
 * When a live process started, as an opaque text that no other process ever has; null where there
 * is no such process or it has ended and merely waits to be reaped.
 */
export function processStart(pid) {
  if (process.platform !== 'linux') return processField(pid, 'lstart');
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the command in parentheses and may hold anything; 22 is the start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  return `${(readText('/proc/sys/kernel/random/boot_id') ?? '').trim()}:${fields[19]}`;
}

/** The command line of a live process, its parts joined by spaces; null where there is none. */
export function processCommand(pid) {
  if (process.platform !== 'linux') return processField(pid, 'command');
  const line = readText(`/proc/${pid}/cmdline`);
  return line === null || line === '' ? null : line.replaceAll('\0', ' ').trim();
}

function processField(pid, field) {
  const found = spawnSync('ps', ['-o', `${field}=`, '-p', String(pid)], { encoding: 'utf8' });
  const text = (found.stdout ?? '').trim();
  return found.status === 0 && text !== '' ? text : null;
}

function linked(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes a stale lock; one that a third process took since it was read is put back. */
function setAside(path, stale) {
  const aside = `${path}.stale.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  if (readText(aside) !== stale) linked(aside, path);
  rmSync(aside, { force: true });
}

function release(path, mine) {
  if (readText(path) === mine) rmSync(path, { force: true });
}

function parseHolder(text) {
  try {
    const holder = JSON.parse(text);
    return Number.isInteger(holder?.pid) && typeof holder.start === 'string' ? holder : null;
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
