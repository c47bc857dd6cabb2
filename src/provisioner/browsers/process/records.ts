import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pidSpace, processStart } from './tree.ts';
import type { Session } from './tree.ts';

/**
 * What runs, written down before and after it is started, so that the next service process can end
 * what this one leaves when it is killed. One small file a workload; no fsync, since no process
 * survives a power cut either.
 */
export type Records = {
  /** Replaces the workload's record as a whole. */
  write(record: WorkloadRecord): void;
  remove(workloadId: string): void;
  /**
   * Records of our own and of service processes that are gone; those of another living one are its
   * affair.
   */
  present(): WorkloadRecord[];
};

export type WorkloadRecord = {
  workloadId: string;
  /** Everything the workload has on disk, its profile included. */
  folder: string;
  /** X display number; null: it has none. */
  display: number | null;
  /** Its programs, as far as they were started. */
  sessions: Session[];
};

type StoredRecord = WorkloadRecord & { instance: string; owner: Session; pidSpace: string };

/** Keeps the records in a folder that holds nothing else; it is made where it is missing. */
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
          // Pids of another boot or container say nothing about the processes here.
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
    // Another service process on the same folder may have removed it since it was listed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
