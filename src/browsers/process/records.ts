import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pidSpace, processStart } from './tree.ts';
import type { Session } from './tree.ts';

/**
 * Records of the running browsers, written before and after each start, so that the next service
 * process can end what this one leaves if it is killed. One small file per browser; no fsync, since
 * no process survives a power cut either.
 */
export type Records = {
  /** Replaces the browser's record as a whole. */
  write(record: BrowserRecord): void;
  remove(workloadId: string): void;
  /**
   * The records of this process and of those that have ended, without those of other living ones.
   */
  present(): BrowserRecord[];
};

export type BrowserRecord = {
  workloadId: string;
  /** The folder of all the browser's files, its profile included. */
  folder: string;
  /** X display number; null: no display. */
  display: number | null;
  /** The sessions of its programs, as far as they were started. */
  sessions: Session[];
};

type StoredRecord = BrowserRecord & { instance: string; owner: Session; pidSpace: string };

/** Keeps the records in a folder of their own; it is created if it is missing. */
export function openRecords(directory: string): Records {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const here = pidSpace();
  const instance = randomUUID();
  const owner = { pid: process.pid, startTicks: processStart(process.pid) ?? 0 };
  const fileOf = (workloadId: string): string =>
    join(directory, `${encodeURIComponent(workloadId)}.json`);

  return {
    write: (record) => {
      const file = fileOf(record.workloadId);
      const stored: StoredRecord = { ...record, instance, owner, pidSpace: here };
      writeFileSync(`${file}.new`, JSON.stringify(stored), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
    remove: (workloadId) => rmSync(fileOf(workloadId), { force: true }),
    present: () =>
      readdirSync(directory)
        .filter((name) => name.endsWith('.json'))
        .map((name) => readRecord(join(directory, name)))
        .filter((record) => record !== null)
        .filter(
          (record) =>
            record.instance === instance || record.pidSpace !== here || !isAlive(record.owner),
        )
        .map((record) => ({
          workloadId: record.workloadId,
          folder: record.folder,
          display: record.display,
          // Pids of another boot or container mean nothing here.
          sessions: record.pidSpace === here ? record.sessions : [],
        })),
  };
}

function isAlive({ pid, startTicks }: Session): boolean {
  return processStart(pid) === startTicks;
}

function readRecord(file: string): StoredRecord | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as StoredRecord;
  } catch (error) {
    // Another service process with the same folder may have removed it since the listing.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
