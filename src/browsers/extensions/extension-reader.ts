import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createFairSlots } from '#src/kernel/async/fair-slots.ts';
import { reject, type Rejection } from '#src/kernel/errors.ts';
import type { ExtensionAnswer } from './extension-program.ts';
import type { ReadExtension } from './read-extension.ts';

/** Reads uploads apart from this process, which answers others meanwhile. */
export type ExtensionReader = {
  /**
   * Waits for its organization's turn. A rejection: the upload is no extension, too many wait, or
   * it could not be read in its time.
   */
  read(organizationId: string, upload: Buffer): Promise<ReadExtension | Rejection>;
};

const PROGRAM = fileURLToPath(new URL('./extension-program.ts', import.meta.url));
/** From the start of the process; the largest upload takes a second of a core. */
const READ_MS = 30_000;
const HEAP_MB = 64;
const ANSWER_BYTES_MAX = 64 * 1024;
/** One process at a time: it has the upload, 20 MB, a second time. */
const TURNS = { slots: 1, slotsPerOwner: 1, places: 16, placesPerOwner: 4 };
const RETRY_AFTER_SECONDS = 5;

type ReaderOptions = {
  /** For tests. */
  program?: string;
  readMs?: number;
  turns?: typeof TURNS;
};

/** @param onFailure called where the process has crashed or was killed */
export function createExtensionReader(
  onFailure: (error: unknown) => void,
  { program = PROGRAM, readMs = READ_MS, turns = TURNS }: ReaderOptions = {},
): ExtensionReader {
  const slots = createFairSlots(turns);
  return {
    async read(organizationId, upload) {
      // A proxy waits for an answer for a minute and some seconds: for a turn and a reading.
      const tooLate = AbortSignal.timeout(readMs);
      using turn = await slots.acquire(organizationId, tooLate);
      if (turn === null || tooLate.aborted)
        return unavailable('Too many extensions are being read; try again.');
      try {
        const found = await ask(program, upload, readMs);
        if ('bad' in found) return reject('INVALID_EXTENSION', {}, { message: found.bad });
        const { zipAt, ...facts } = found;
        return { ...facts, zip: upload.subarray(zipAt) };
      } catch (error) {
        onFailure(error);
        return unavailable('The extension could not be read in time.');
      }
    },
  };
}

function unavailable(message: string): Rejection {
  const more = { message, retryAfterSeconds: RETRY_AFTER_SECONDS };
  return reject('UNAVAILABLE', { part: 'extension-reader' }, more);
}

async function ask(program: string, upload: Buffer, readMs: number): Promise<ExtensionAnswer> {
  const args = [`--max-old-space-size=${HEAP_MB}`, '--no-warnings', program];
  const answered = promisify(execFile)(process.execPath, args, {
    env: {},
    timeout: readMs,
    killSignal: 'SIGKILL',
    maxBuffer: ANSWER_BYTES_MAX,
  });
  const { stdin } = answered.child;
  // One that ends before it has read all: its exit tells why.
  stdin?.on('error', () => undefined);
  stdin?.end(upload);
  const { stdout } = await answered;
  return JSON.parse(stdout) as ExtensionAnswer;
}
