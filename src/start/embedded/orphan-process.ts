/**
 * Children that outlived a killed service. A file in DATA_DIR has each child's process id and start
 * time, so that the next start ends exactly that process.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { sleep } from '#src/kernel/async/sleep.ts';
import { processCommand, processStart } from './pid-lock.mjs';

/** Time from SIGTERM to SIGKILL. */
export const STOP_GRACE_MS = 5000;
const KILL_WAIT_MS = 2000;
const POLL_MS = 20;

type ChildRecord = { pid: number; start: string; program: string };

export async function recordChild(pidFile: string, pid: number, command: string): Promise<void> {
  const start = processStart(pid);
  // The child has ended already.
  if (start === null) return;
  const record: ChildRecord = { pid, start, program: basename(command) };
  await writeFile(`${pidFile}.new`, JSON.stringify(record));
  await rename(`${pidFile}.new`, pidFile);
}

export async function forgetChild(pidFile: string): Promise<void> {
  await rm(pidFile, { force: true });
}

/** Ends the recorded child if it still lives, and removes its record. */
export async function endOrphan(pidFile: string): Promise<void> {
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

/** Compares start time and name: redis-server changes its title but keeps its name in it. */
function isSame({ pid, start, program }: ChildRecord): boolean {
  return processStart(pid) === start && (processCommand(pid) ?? '').includes(program);
}

async function isGone(record: ChildRecord, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (processStart(record.pid) === record.start) {
    if (Date.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function signal({ pid }: ChildRecord, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has ended meanwhile; the caller checks that next.
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
