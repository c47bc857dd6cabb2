import { Worker } from 'node:worker_threads';
import { CorruptSegment } from '#src/features/archive/manifest.ts';
import { readBack, type ReadBack } from '#src/features/archive/read-back.ts';
import type { ArchivePlace } from '#src/kernel/config/archive.ts';
import { openArchiveFiles } from './archive-files.ts';
import type { ReadBackOutcome, ReadBackTask } from './read-back.worker.ts';

/** A thread takes 0.1 s to start: the time in which so many records are read back. */
const RECORDS_MIN = 20_000;

/**
 * Reads each segment back in a thread of its own: the next segment is written meanwhile, and the
 * requests of a service whose process this is do not wait. A small segment is not worth a thread.
 */
export function readBackInThread(place: ArchivePlace): ReadBack {
  return async (segment) => {
    const { manifest } = segment;
    if (manifest.records < RECORDS_MIN) return readBack(await openArchiveFiles(place), segment);
    const task: ReadBackTask = { place, segment };
    const { promise, resolve, reject } = Promise.withResolvers<ReadBackOutcome>();
    const worker = new Worker(new URL('./read-back.worker.ts', import.meta.url), {
      workerData: task,
    });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with code ${code}`)));
    const { fault } = await promise;
    if (fault !== null) throw new CorruptSegment(manifest.number, fault.line, fault.problem);
  };
}
