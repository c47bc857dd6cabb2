/**
 * Lock files that contain the holder's process id and start time. The lock of a dead process (kill
 * -9, power cut) is recognized as stale even if its process id was reused.
 * Plain JavaScript: launch.mjs needs it before a Node that runs TypeScript is installed.
 *
 * Does not exclude processes on other machines, or in containers that share the folder but have
 * other process ids.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 50;
/** A try fails only if another process takes or leaves the lock at the same moment. */
const TRIES_MAX = 20;

/** Takes the lock, or returns its holder. @throws Error if the folder cannot be written */
export function takeLock(path) {
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const mine = JSON.stringify({ pid: process.pid, start: processStart(process.pid) });
  writeFileSync(draft, mine);
  try {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      // link() instead of an exclusive open: the lock file is never visible without its content.
      if (linked(draft, path)) return { taken: true, release: () => release(path, mine) };
      const text = readText(path);
      const holder = text === null ? null : parseHolder(text);
      if (holder !== null && processStart(holder.pid) === holder.start) {
        return { taken: false, holder };
      }
      if (text !== null) setAside(path, text);
    }
    throw new Error(`the lock ${path} changed its owner too often to be acquired`);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Waits for the lock, takes it and returns its release function.
 * `onWait` is called once if another process holds the lock.
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
 * Start time of a live process, as an opaque text that no other process ever has; null if there is
 * no such process or it is a zombie.
 */
export function processStart(pid) {
  if (process.platform !== 'linux') return processField(pid, 'lstart');
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // Field 2 is the command in parentheses and may contain any character; field 22 the start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return null;
  return `${(readText('/proc/sys/kernel/random/boot_id') ?? '').trim()}:${fields[19]}`;
}

/** The command line of a live process, joined by spaces; null if there is no such process. */
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

/** Removes a stale lock; a lock that a third process took meanwhile is put back. */
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
