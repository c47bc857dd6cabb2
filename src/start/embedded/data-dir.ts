/** The lock of DATA_DIR: one service at a time, and the folder must be writable. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { sleep } from '#src/kernel/async/sleep.ts';
import { takeLock } from './pid-lock.mjs';

/** Another live service uses the same DATA_DIR. */
export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';
}

/** DATA_DIR cannot be created or written; the message has the reason. */
export class DataDirNotWritable extends Error {
  override readonly name = 'DataDirNotWritable';
}

const POLL_MS = 50;

/**
 * Creates the folder if it is missing and locks it until disposal. The lock of a killed service is
 * taken over. `waitMs`: how long to wait for a service that is shutting down.
 * @throws DataDirInUse
 * @throws DataDirNotWritable
 */
export async function lockDataDir(
  dataDir: string,
  { waitMs = 3000 }: { waitMs?: number } = {},
): Promise<AsyncDisposable> {
  const dir = resolve(dataDir);
  makeWritable(dir);
  const deadline = Date.now() + waitMs;
  for (;;) {
    const lock = takeLock(join(dir, 'lock'));
    if (lock.taken) return { [Symbol.asyncDispose]: async () => lock.release() };
    if (Date.now() >= deadline) {
      throw new DataDirInUse(
        `DATA_DIR ${dir} is in use by another running service (process ${lock.holder.pid}): ` +
          'stop it, or set another DATA_DIR',
      );
    }
    await sleep(POLL_MS);
  }
}

function makeWritable(dir: string): void {
  try {
    // The folder will hold secrets, so only its owner may read it.
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const probe = join(dir, `.writable.${process.pid}`);
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DataDirNotWritable(`DATA_DIR ${dir} cannot be written: ${reason}`, { cause: error });
  }
}
