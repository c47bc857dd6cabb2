import { parentPort, workerData } from 'node:worker_threads';
import { CorruptSegment } from '#src/features/archive/manifest.ts';
import { readBack, type WrittenSegment } from '#src/features/archive/read-back.ts';
import type { ArchivePlace } from '#src/kernel/config/archive.ts';
import { openArchiveFiles } from './archive-files.ts';

/** The thread of `readBackInThread`: reads one segment back. */
export type ReadBackTask = { place: ArchivePlace; segment: WrittenSegment };

/** `fault`: what is wrong with the segment; null: nothing. Any other error ends the thread. */
export type ReadBackOutcome = { fault: Pick<CorruptSegment, 'line' | 'problem'> | null };

async function work({ place, segment }: ReadBackTask): Promise<ReadBackOutcome> {
  try {
    await readBack(await openArchiveFiles(place), segment);
    return { fault: null };
  } catch (error) {
    if (!(error instanceof CorruptSegment)) throw error;
    return { fault: { line: error.line, problem: error.problem } };
  }
}

parentPort?.postMessage(await work(workerData as ReadBackTask));
