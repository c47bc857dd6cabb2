/**
 * Children that outlived a service that was killed: each has a file in DATA_DIR with its process id
 * and start time, by which the next start finds and ends it, and never another process.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processCommand, processStart } from './pid-lock.mjs';

/** The longest a child may take to end when asked, before it is killed. */
export const STOP_GRACE_MS = 5000;
const KILL_WAIT_MS = 2000;
const POLL_MS = 20;

type ChildRecord = { pid: number; start: string; program: string };

export async function recordChild(pidFile: string, pid: number, command: string): Promise<void> {
  const start = processStart(pid);
  // It has ended already: there is nothing to find again.
  if (start === null) return;
  const record: ChildRecord = { pid, start, program: basename(command) };
  await writeFile(`${pidFile}.new`, JSON.stringify(record));
  await rename(`${pidFile}.new`, pidFile);
}

export async function forgetChild(pidFile: string): Promise<void> {
  await rm(pidFile, { force: true });
}

/** Ends the recorded child where it still lives; resolves when it is gone and forgotten. */
export async function endLeftover(pidFile: string): Promise<void> {
  const record = parseRecord(await readFile(pidFile, 'utf8').catch(() => ''));
  if (record !== null && isSame(record)) {
    signal(record, 'SIGTERM');
    if (!(await isGone(record, STOP_GRACE_MS))) {
      signal(record, 'SIGKILL');
      if (!(await isGone(record, KILL_WAIT_MS))) {
        throw new Error(
          `${record.program} (process ${record.pid}) of an earlier start cannot be ended`,
        );
      }
    }
  }
  await forgetChild(pidFile);
}

/** The title of a process may change (redis-server's does), but both programs keep their names. */
function isSame({ pid, start, program }: ChildRecord): boolean {
  return processStart(pid) === start && (processCommand(pid) ?? '').includes(program);
}

async function isGone(record: ChildRecord, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (processStart(record.pid) === record.start) {
    if (Date.now() > deadline) return false;
    await delay(POLL_MS);
  }
  return true;
}

function signal({ pid }: ChildRecord, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended since it was looked at; whether it is gone is asked for next.
  }
}

function parseRecord(text: string): ChildRecord | null {
  try {
    const { pid, start, program } = JSON.parse(text) as Partial<ChildRecord>;
    if (typeof pid !== 'number' || typeof start !== 'string' || !program) return null;
    return { pid, start, program };
  } catch {
    return null;
  }
}
